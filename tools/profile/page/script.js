/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
'use strict';
// Draws the page from the figures in #data. Names come out of code objects: they are set as text, never as markup.

window.addEventListener('error', (event) => {
  document.documentElement.dataset.failure = event.message;
  const note = document.createElement('p');
  note.className = 'failure';
  note.textContent = `This page could not be drawn: ${event.message}`;
  document.getElementById('page').prepend(note);
});

// What a kind of instruction is drawn as.
const classOfKind = {
  matrix: 'matrix', plain: 'vector', three_source: 'vector', packed: 'vector', lane_swap: 'vector', double: 'vector',
  transcendental: 'transcendental', lds_read: 'lds', lds_write: 'lds', lds_lanes: 'lds', lds_dma: 'memory',
  load: 'memory', store: 'memory', scalar_load: 'scalar', scalar: 'scalar', wait: 'control', barrier: 'control',
  branch: 'control',
};
const classNames = {
  matrix: 'matrix', vector: 'vector', transcendental: 'transcendental', lds: 'LDS', memory: 'vector memory and DMA',
  scalar: 'scalar', control: 'waits, barriers, branches',
};
const unitClasses = { 'matrix pipe': 'matrix', 'vector port': 'vector', LDS: 'lds', 'vector memory': 'memory', scalar: 'scalar' };
// Causes of waits are told apart by what they wait for.
const causeColours = {
  'matrix pipe': 'matrix', 'matrix result': 'matrix', 'vector port': 'vector', operand: 'vector', 'other wave': 'vector',
  LDS: 'lds', 'vector memory': 'memory', 'full counter': 'memory', 'full queue': 'memory', 'scalar memory': 'scalar', 'own interval': 'scalar',
  pause: 'scalar', fetch: 'scalar', branch: 'control', barrier: 'barrier',
};
const colour = (name) => `var(--${name || 'scalar'})`;
const classOf = (kind) => classOfKind[kind] || 'scalar';

const percent = (part, digits = 0) => `${(100 * part).toFixed(digits)} %`;
const grouped = (number) => Math.round(number).toLocaleString('en-US').replaceAll(',', ' ');
const hex = (number) => '0x' + number.toString(16).padStart(4, '0');
const short = (number) => {
  if (number >= 1e9) return (number / 1e9).toPrecision(3) + ' G';
  if (number >= 1e6) return (number / 1e6).toPrecision(3) + ' M';
  if (number >= 1e4) return (number / 1e3).toPrecision(3) + ' k';
  return number >= 100 ? number.toFixed(0) : number.toPrecision(3);
};
const total = (cycles) => Object.values(cycles).reduce((sum, value) => sum + value, 0);
const byValue = (cycles) => Object.entries(cycles).sort((a, b) => b[1] - a[1]);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'class') made.className = value;
    else if (key === 'style') made.style.cssText = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'style') made.style.cssText = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
const words = (x, y, text, attributes = {}) => drawn('text', { x, y, ...attributes }, text);
const titled = (shape, title) => { shape.append(drawn('title', {}, title)); return shape; };

function section(title, ...children) {
  return element('section', {}, element('h2', {}, title), ...children);
}
const note = (text) => element('p', { class: 'soft' }, text);
const tile = (name, value, remark) =>
  element('div', { class: 'tile' }, element('div', { class: 'name' }, name), element('div', { class: 'value' }, value),
    element('div', { class: 'note' }, remark || '\u00a0'));

function table(heads, rows) {
  const cell = (tag, content, how) => element(tag, how ? { class: how } : {}, ...(Array.isArray(content) ? content : [content]));
  return element('div', { class: 'scroll' },
    element('table', {},
      element('thead', {}, element('tr', {}, ...heads.map(([text, how]) => cell('th', text, how)))),
      element('tbody', {}, ...rows.map((row) => element('tr', {}, ...row.map((content, i) => cell('td', content, heads[i][1])))))));
}
const dot = (name) => element('i', { class: 'dot', style: `background:${colour(name)}` });

function stackedBar(cycles, whole, height = 14) {
  const bar = element('div', { style: `display:flex;height:${height}px;border-radius:3px;overflow:hidden;background:var(--grid)` });
  for (const [cause, value] of byValue(cycles)) {
    if (value / whole < 0.002) continue;
    bar.append(element('span', {
      style: `width:${100 * value / whole}%;background:${colour(causeColours[cause])};border-right:1px solid var(--panel)`,
      title: `${cause}: ${percent(value / whole, 1)}`,
    }));
  }
  return bar;
}
const causesText = (cycles) => {
  const whole = total(cycles);
  return byValue(cycles).filter(([, value]) => value / whole >= 0.01).map(([cause, value]) => `${cause} ${percent(value / whole)}`).join(', ');
};

// ---- one turn of the loop -------------------------------------------------------------------------------------------

const laneHeight = 26;
const pipeHeight = 12;
const axisHeight = 26;
const groupGap = 12;

function laneRows(iteration) {
  const rows = [];
  let y = axisHeight + 4;
  let simd = null;
  for (const lane of iteration.lanes) {
    if (simd !== null && lane.simd !== simd) y += groupGap;
    simd = lane.simd;
    const height = lane.pipe ? pipeHeight : laneHeight;
    rows.push({ lane, y, height });
    y += height + 3;
  }
  return { rows, height: y + 6 };
}

function laneNames({ rows, height }) {
  const width = 132;
  const names = drawn('svg', { width, height, class: 'lane-names' });
  for (const { lane, y, height: size } of rows) {
    if (lane.pipe) {
      names.append(words(10, y + size - 2, `SIMD ${lane.simd}`, { class: 'strong' }));
      names.append(words(width - 8, y + size - 2, 'matrix pipe', { 'text-anchor': 'end' }));
    } else {
      names.append(words(width - 8, y + size / 2 + 4, lane.name.replace('workgroup ', 'wg '), { class: 'lane', 'text-anchor': 'end' }));
    }
  }
  return names;
}

function niceStep(range, count) {
  const rough = range / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

function lanesDrawing(iteration, { rows, height }, width) {
  const scale = width / iteration.cycles;
  const svg = drawn('svg', { width, height, class: 'lanes-drawing', role: 'img', 'aria-label': 'what each wave issued and waited for, by cycle' });
  svg.append(drawn('defs', {}, drawn('pattern', { id: 'hatch', width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    drawn('rect', { width: 1.2, height: 5, style: 'fill:var(--hatch)' }))));
  const step = niceStep(iteration.cycles, width / 90);
  for (let at = 0; at <= iteration.cycles; at += step) {
    svg.append(drawn('line', { x1: at * scale, x2: at * scale, y1: axisHeight - 4, y2: height, style: 'stroke:var(--grid)' }));
    const anchor = at === 0 ? 'start' : (at + step > iteration.cycles && at * scale > width - 24 ? 'end' : 'middle');
    svg.append(words(at * scale + (at === 0 ? 3 : 0), 15, grouped(at), { 'text-anchor': anchor }));
  }
  for (const { lane, y, height: size } of rows) {
    const track = drawn('g', { class: lane.pipe ? 'track pipe' : 'track wave', 'data-track': lane.pipe ? `SIMD ${lane.simd}, matrix pipe` : lane.name });
    track.append(drawn('rect', { x: 0, y, width, height: size, style: 'fill:var(--paper)' }));
    const spanTitle = (start, cycles, what) => `${what}\n${lane.name}, cycle ${grouped(iteration.first + start)} (${start}), ${cycles} cycles`;
    if (lane.pipe) {
      for (const [start, cycles, text] of lane.spans) {
        track.append(titled(drawn('rect', { x: start * scale, y, width: Math.max(cycles * scale - 0.4, 0.4), height: size, class: 'pipe-span', style: 'fill:var(--matrix)' }),
          spanTitle(start, cycles, iteration.texts[text][1])));
      }
      svg.append(track);
      continue;
    }
    for (const [start, cycles, cause] of lane.waits) {
      track.append(titled(drawn('rect', { x: start * scale, y: y + 5, width: Math.max(cycles * scale, 0.3), height: size - 10, class: 'wait', style: 'fill:url(#hatch)' }),
        spanTitle(start, cycles, `waits: ${iteration.causes[cause]}`)));
    }
    for (const [start, cycles, kind, text] of lane.issued) {
      const [offset, instruction] = iteration.texts[text];
      track.append(titled(drawn('rect', { x: start * scale, y: y + 1, width: Math.max(cycles * scale - 0.25, 0.6), height: size - 2, class: 'issued', style: `fill:${colour(classOf(iteration.kinds[kind]))}` }),
        spanTitle(start, cycles, `${hex(offset)} ${instruction}`)));
    }
    for (const at of lane.barriers) {
      track.append(titled(drawn('rect', { x: at * scale - 1, y: y - 1, width: 2, height: size + 2, class: 'arrival', style: 'fill:var(--barrier)' }), spanTitle(at, 0, 'arrives at a barrier')));
    }
    svg.append(track);
  }
  for (const { at, workgroup } of iteration.releases) {
    svg.append(titled(drawn('line', { x1: at * scale, x2: at * scale, y1: axisHeight - 2, y2: height, class: 'release', style: 'stroke:var(--barrier);stroke-width:1;stroke-dasharray:3 3;opacity:.75' }),
      `${workgroup}: a barrier opens, cycle ${at}`));
  }
  return svg;
}

function timelineSection(profile) {
  const iteration = profile.iteration;
  if (!iteration) return section('Timeline', note('None was kept.'));
  const layout = laneRows(iteration);
  const lanes = element('div', { class: 'lanes', tabindex: '0' });
  const draw = (zoom) => {
    const room = Math.max(document.documentElement.clientWidth, 320);
    const width = Math.max(Math.min(room, 1240) - 40 - 136, 560) * zoom;
    lanes.replaceChildren(lanesDrawing(iteration, layout, width));
  };
  const zooms = element('span', { class: 'zoom', role: 'group', 'aria-label': 'zoom' });
  for (const zoom of [1, 2, 4, 8]) {
    const button = element('button', { type: 'button', 'aria-pressed': zoom === 1 ? 'true' : 'false' }, `${zoom}×`);
    button.addEventListener('click', () => {
      for (const other of zooms.children) other.setAttribute('aria-pressed', other === button ? 'true' : 'false');
      draw(zoom);
    });
    zooms.append(button);
  }
  draw(1);
  const shown = new Set(iteration.kinds.map(classOf));
  const legend = element('div', { class: 'legend' },
    ...Object.entries(classNames).filter(([name]) => shown.has(name)).map(([name, text]) =>
      element('span', {}, element('i', { style: `background:${colour(name)}` }), text)),
    element('span', {}, element('i', { class: 'hatched' }), 'waits'),
    element('span', {}, element('i', { class: 'rule', style: 'background:var(--barrier)' }), 'arrives at a barrier'),
    element('span', {}, element('i', { class: 'rule', style: 'background:repeating-linear-gradient(var(--barrier) 0 3px,transparent 3px 6px)' }), 'barrier opens'),
    zooms);
  const what = iteration.is_iteration ? 'One turn of the steady loop' : 'A piece of the timeline';
  return section(what,
    note(`${grouped(iteration.cycles)} cycles of one compute unit from its cycle ${grouped(iteration.first)} on; matrix pipes busy ${percent(iteration.matrix_busy, 1)}. `
      + (iteration.is_iteration ? 'From one visit of the loop\'s head by the first wave to the next. ' : 'No loop goes round often enough in it to be cut out. ')
      + 'Hover for the instruction.'),
    legend,
    element('div', { class: 'timeline' }, element('div', { class: 'names' }, laneNames(layout)), lanes));
}

// ---- bars, time, roofs ----------------------------------------------------------------------------------------------

function unitsPanel(launch) {
  const bars = element('div', { class: 'bars units' });
  for (const unit of launch.units) {
    const track = element('div', { class: 'track' },
      element('div', { class: 'fill', style: `width:${100 * Math.min(unit.busy, 1)}%;background:${colour(unitClasses[unit.name])}` }));
    if (unit.name === 'matrix pipe') {
      track.append(element('div', { class: 'mark', style: `left:calc(${100 * launch.steady_matrix_busy}% - 1px)`, title: `middle half of the time: ${percent(launch.steady_matrix_busy, 1)}` }));
    }
    bars.append(element('span', {}, unit.name), track, element('span', { class: 'figure' }, percent(unit.busy, 1)));
  }
  const unit = launch.compute_unit;
  const ports = unit.port_busy > 0 ? `${percent(unit.port_beside_matrix / unit.port_busy)} of the port's time lay beside a matrix instruction. ` : '';
  const lost = unit.lds_busy > 0 ? `Of LDS time ${percent(unit.lds_lost / unit.lds_busy, 1)} was lost to bank conflicts. ` : '';
  return element('div', { class: 'panel' }, element('h3', {}, 'Busy, whole life of the sampled workgroups'), bars,
    element('p', { class: 'soft', style: 'margin:12px 0 0' }, `${ports}${lost}The mark is the matrix pipe in the middle half of the time.`));
}

function waitsPanel(launch) {
  return element('div', { class: 'panel' }, element('h3', {}, 'What waves waited for, of their time'),
    causeBars(launch.waves.waited, launch.waves.cycles, 9));
}

// Units of a chart's drawing: its letters keep their size on a phone.
const chartWidth = () => (document.documentElement.clientWidth < 600 ? 330 : 560);

function overTimePanel(launch) {
  const { cycles, busy } = launch.matrix_over_time;
  const width = chartWidth();
  const height = 150;
  const left = 40;
  const bottom = height - 22;
  const svg = drawn('svg', { viewBox: `0 0 ${width} ${height}`, width: '100%', class: 'over-time', role: 'img', 'aria-label': 'matrix pipes over time' });
  const x = (i) => left + (width - left - 8) * i / busy.length;
  const y = (value) => bottom - (bottom - 8) * Math.min(value, 1);
  for (const value of [0, 0.5, 1]) {
    svg.append(drawn('line', { x1: left, x2: width - 8, y1: y(value), y2: y(value), style: 'stroke:var(--line)' }));
    svg.append(words(left - 6, y(value) + 4, percent(value), { 'text-anchor': 'end' }));
  }
  let path = `M ${x(0)} ${y(0)}`;
  busy.forEach((value, i) => { path += ` L ${x(i)} ${y(value)} L ${x(i + 1)} ${y(value)}`; });
  svg.append(drawn('path', { d: `${path} L ${x(busy.length)} ${y(0)} Z`, style: 'fill:var(--matrix);opacity:.85' }));
  svg.append(words(left, height - 6, '0'));
  svg.append(words(width - 8, height - 6, `${grouped(cycles * busy.length)} cycles`, { 'text-anchor': 'end' }));
  return element('div', { class: 'panel' }, element('h3', {}, 'Matrix pipes over the life of the first sampled compute unit'), svg);
}

// A bar for each cause, longest first; the longest fills its track.
function causeBars(cycles, whole, most) {
  const bars = element('div', { class: 'bars waits' });
  const parts = byValue(cycles).filter(([, value]) => value / whole >= 0.005).slice(0, most);
  const longest = Math.max(...parts.map(([, value]) => value / whole), 0.01);
  for (const [cause, value] of parts) {
    bars.append(element('span', {}, cause),
      element('div', { class: 'track' }, element('div', { class: 'fill', style: `width:${100 * value / whole / longest}%;background:${colour(causeColours[cause])}` })),
      element('span', { class: 'figure' }, percent(value / whole, 1)));
  }
  return bars;
}

function idlePanel(launch) {
  const unit = launch.compute_unit;
  return element('div', { class: 'panel', style: 'flex:1' }, element('h3', {}, 'Matrix pipe and vector port both idle, of the SIMDs\' time: what the foremost wave waited for'),
    causeBars(unit.idle, unit.cycles * unit.simds, 7));
}

const levelColours = ['lds', 'vector', 'transcendental', 'memory'];

function roofPanel(launch) {
  const roof = launch.roofline;
  const panel = element('div', { class: 'panel' }, element('h3', {}, 'Roofline: matrix operations a cycle of a compute unit'));
  const levels = roof.levels.filter((level) => level.bytes > 0);
  if (!roof.pipe || levels.length === 0) {
    panel.append(note(roof.pipe ? 'No memory was read.' : 'No matrix instructions ran.'));
    return panel;
  }
  const peak = roof.pipe.operations_a_cycle;
  const reached = roof.operations / roof.cycles;
  const width = chartWidth();
  const height = 300;
  const box = { left: 52, right: width - 14, top: 16, bottom: height - 34 };
  const intensities = levels.flatMap((level) => [roof.operations / level.bytes, peak / level.bytes_a_cycle]);
  const low = Math.log10(Math.min(...intensities)) - 0.5;
  const high = Math.log10(Math.max(...intensities)) + 0.5;
  const bottom = Math.log10(Math.min(reached, peak / 30)) - 0.1;
  const top = Math.log10(peak) + 0.18;
  const x = (value) => box.left + (box.right - box.left) * (Math.log10(value) - low) / (high - low);
  const y = (value) => box.bottom - (box.bottom - box.top) * (Math.log10(value) - bottom) / (top - bottom);
  const svg = drawn('svg', { viewBox: `0 0 ${width} ${height}`, width: '100%', class: 'roofline', role: 'img', 'aria-label': 'roofline' });
  for (let power = Math.ceil(low); power <= high; ++power) {
    svg.append(drawn('line', { x1: x(10 ** power), x2: x(10 ** power), y1: box.top, y2: box.bottom, style: 'stroke:var(--grid)' }));
    svg.append(words(x(10 ** power), box.bottom + 15, grouped(10 ** power), { 'text-anchor': 'middle' }));
  }
  for (let power = Math.ceil(bottom); power <= top; ++power) {
    svg.append(drawn('line', { x1: box.left, x2: box.right, y1: y(10 ** power), y2: y(10 ** power), style: 'stroke:var(--grid)' }));
    svg.append(words(box.left - 6, y(10 ** power) + 4, grouped(10 ** power), { 'text-anchor': 'end' }));
  }
  svg.append(words(box.right, height - 4, 'operations a byte', { 'text-anchor': 'end' }));
  svg.append(drawn('line', { x1: box.left, x2: box.right, y1: y(peak), y2: y(peak), style: 'stroke:var(--matrix);stroke-width:2' }));
  svg.append(words(box.right - 4, y(peak) - 5, `matrix pipes, ${grouped(peak)} a cycle (${roof.pipe.grade})`, { 'text-anchor': 'end', class: 'strong' }));
  const legend = element('div', { class: 'legend wraps', style: 'margin:8px 0 0' });
  levels.forEach((level) => {
    const tone = colour(levelColours[roof.levels.indexOf(level)]);
    const ridge = peak / level.bytes_a_cycle;
    const from = Math.max(10 ** low, 10 ** bottom / level.bytes_a_cycle);
    svg.append(drawn('line', { x1: x(from), y1: y(from * level.bytes_a_cycle), x2: x(ridge), y2: y(peak), style: `stroke:${tone};stroke-width:1.5` }));
    const intensity = roof.operations / level.bytes;
    const could = Math.min(peak, intensity * level.bytes_a_cycle);
    svg.append(titled(drawn('circle', { cx: x(intensity), cy: y(reached), r: 5.5, class: 'reached', style: `fill:${tone};stroke:var(--panel);stroke-width:1.5` }),
      `${level.name}: ${short(intensity)} operations a byte, ${grouped(reached)} a cycle of at most ${grouped(could)}`));
    legend.append(element('span', { title: level.source }, element('i', { style: `background:${tone}` }),
      `${level.name}: ${short(level.bytes_a_cycle)} bytes a cycle (${level.grade}), ${percent(level.bytes / roof.cycles / level.bytes_a_cycle)} of it used`));
  });
  panel.append(svg, legend,
    element('p', { class: 'soft', style: 'margin:8px 0 0' },
      `Dots: ${grouped(reached)} operations a cycle, ${percent(reached / peak, 1)} of the matrix pipes' roof, seen from each level of memory. Slanted lines: a compute unit's equal share of that level's rate.`));
  return panel;
}

// ---- tables ---------------------------------------------------------------------------------------------------------

function instructionsSection(launch) {
  const whole = launch.waves.cycles;
  return section('Waits by instruction', note('What stood before an instruction, of all waves\' time; the twenty with the longest.'),
    table([['offset', 'figure'], ['instruction', 'code'], ['issued', 'figure'], ['wave time', 'figure'], ['', 'share'], ['waited for', 'causes']],
      launch.instructions.map((each) => [
        element('code', {}, hex(each.offset)), [dot(classOf(each.kind)), element('code', {}, each.text)], grouped(each.issued),
        percent(total(each.waited) / whole, 1), stackedBar(each.waited, total(launch.instructions[0].waited)), causesText(each.waited)])));
}

function clustersSection(launch) {
  const whole = launch.waves.cycles;
  const unit = launch.compute_unit.cycles * launch.compute_unit.simds;
  const kept = launch.clusters.filter((each) => total(each.waited) / whole >= 0.002 || each.matrix_cycles / unit >= 0.002);
  return section('Clusters', note('Runs of instructions between jumps, their targets and barriers, in the order of the code.'),
    table([['from', 'figure'], ['to', 'figure'], ['issued', 'figure'], ['matrix pipes', 'figure'], ['wave time', 'figure'], ['', 'share'], ['waited for', 'causes']],
      kept.map((each) => [element('code', {}, hex(each.first)), element('code', {}, hex(each.last)), grouped(each.issued),
        percent(each.matrix_cycles / unit, 1), percent(total(each.waited) / whole, 1),
        stackedBar(each.waited, Math.max(...kept.map((other) => total(other.waited)), 1)), causesText(each.waited)])));
}

function codeSection(launch) {
  const facts = launch.static;
  const rows = Object.entries(launch.mix).sort((a, b) => b[1].issued - a[1].issued);
  const issued = rows.reduce((sum, [, counts]) => sum + counts.issued, 0);
  return section('Code',
    note(`${grouped(facts.instructions)} instructions in ${grouped(facts.code_bytes)} bytes; ${launch.vgprs} vector registers a lane (${facts.agprs} of accumulation), ${facts.sgprs} scalar; `
      + `${grouped(launch.lds_bytes)} bytes of LDS; ${facts.private_bytes} bytes of private memory a lane.`),
    table([['kind', ''], ['in the code', 'figure'], ['issued by the sample', 'figure'], ['of all issued', 'figure']],
      rows.map(([kind, counts]) => [[dot(classOf(kind)), kind.replaceAll('_', ' ')], grouped(counts.static), grouped(counts.issued), percent(counts.issued / issued, 1)])));
}

// ---- pages ----------------------------------------------------------------------------------------------------------

function launchParts(profile, launch) {
  const occupancy = launch.occupancy;
  const error = profile.model_error;
  return [
    element('div', { class: 'tiles' },
      tile('cycles of the launch', grouped(launch.cycles), `${launch.target}, predicted`),
      tile('matrix pipes, steady', percent(launch.steady_matrix_busy, 1), launch.steady_matrix_busy > 0
        ? `${percent(launch.steady_matrix_busy / (1 + error.too_high_percent / 100))} to ${percent(Math.min(launch.steady_matrix_busy / (1 - error.too_low_percent / 100), 1))} by the model's error`
        : 'middle half of the time'),
      tile('matrix pipes, whole launch', percent(launch.matrix_busy, 1), `places taken ${percent(launch.places_taken)} of the time`),
      tile('on a compute unit', `${occupancy.resident} × ${launch.waves_of_workgroup} waves`, `room for ${occupancy.workgroups}, limited by ${occupancy.limited_by}`),
      tile('workgroups run', `${grouped(profile.workgroups.run)}`, profile.workgroups.run < profile.workgroups.of ? `of ${grouped(profile.workgroups.of)}; no results of the others` : 'all of them')),
  ];
}

function profileParts(profile, heading) {
  const longest = profile.launches.reduce((most, launch) => (most && most.cycles >= launch.cycles ? most : launch), null);
  const parts = [element('header', {},
    element('div', { class: 'over' }, heading),
    element('h1', {}, profile.subject + (profile.settings ? ` — ${profile.settings}` : '')),
    element('p', { class: 'code spec' }, profile.kernel_spec || longest.kernel))];
  if (profile.launches.length > 1)
    parts.push(note(`${profile.launches.length} launches, ${grouped(profile.predicted_cycles)} cycles together; the longest, ${longest.kernel}, is shown.`));
  parts.push(...launchParts(profile, longest), timelineSection(profile),
    section('Where time goes', element('div', { class: 'pair' }, unitsPanel(longest), waitsPanel(longest))),
    element('div', { class: 'pair', style: 'margin-top:14px' }, roofPanel(longest),
      element('div', { class: 'column' }, overTimePanel(longest), idlePanel(longest))),
    instructionsSection(longest), clustersSection(longest), codeSection(longest));
  return parts;
}

function comparisonSection(rows) {
  return section('Side by side',
    table([['', ''], ['A', 'figure'], ['B', 'figure'], ['B − A', 'figure']],
      rows.map((row) => [row.name, row.a, row.b, element('span', { class: row.verdict || '' }, row.difference)])));
}

function draw() {
  const data = JSON.parse(document.getElementById('data').textContent);
  const page = document.getElementById('page');
  const parts = [];
  const error = data.profiles[0].model_error;
  const warning = element('div', { class: 'warning' }, element('b', {}, 'Predicted, not measured. '),
    `A model of the GPU made these figures. For ${error.kernels} whole kernels that no constant of it was taken from, its matrix-busy cycles, or its throughput at the power limit, were between ${error.too_low_percent} % too low and ${error.too_high_percent} % too high `
    + '(docs/timing-model.md). Differences between schedules are worth more than the figures themselves.');
  if (data.comparison) {
    parts.push(element('div', { class: 'over' }, `wavejit compare ${data.version}`), element('h1', {}, data.title), warning, comparisonSection(data.comparison));
    data.profiles.forEach((profile, i) => parts.push(element('hr', { style: 'border:0;border-top:1px solid var(--line);margin:40px 0 24px' }), ...profileParts(profile, 'AB'[i])));
  } else {
    parts.push(...profileParts(data.profiles[0], `wavejit profile ${data.version}, ${data.profiles[0].device_name}`));
    parts.splice(1, 0, warning);
  }
  parts.push(element('footer', {}, 'Vector port, matrix pipe and scalar unit: parts of all SIMDs\' cycles. LDS: its banks. Vector memory: its address unit. '
    + 'A wave "waits" in every cycle in which it does not issue; "own interval" is what its last instruction still occupies it. docs/profile.md says more.'));
  page.replaceChildren(...parts);
  document.documentElement.dataset.state = 'drawn';
}
draw();
