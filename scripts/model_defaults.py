#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model's config.json may leave out: the defaults of transformers' classes, as tools/model_defaults.inc has them.

    scripts/model_defaults.py tools/model_config.cpp >tools/model_defaults.inc      # where transformers can be imported

transformers writes into a config.json only what differs from its class, so that a figure that is not in the file is the class's. Only the
fields that `wavejit prebuild --model` reads are here, of the types that it knows. A field that the class computes has no line.
"""
import inspect
import pathlib
import re
import sys

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

FIELDS = ("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size", "num_hidden_layers", "max_position_embeddings", "sliding_window", "use_sliding_window",
          "max_window_layers", "attn_logit_softcapping", "attention_chunk_size", "no_rope_layer_interval", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
          "index_topk", "index_n_heads", "index_head_dim", "num_kv_shared_layers")  # fmt: skip
# Defaults that stand in a class's code instead of among its arguments.
IN_CODE = {"gemma4_text": {"global_head_dim": 512}}


def types(source):
    """The model types that the table in tools/model_config.cpp has."""
    return re.findall(r'\{\.name = "(\w+)"', pathlib.Path(source).read_text(encoding="utf-8"))


def line(name):
    made = CONFIG_MAPPING[name]
    given = {field: value.default for field, value in inspect.signature(made.__init__).parameters.items() if field in FIELDS}
    given |= IN_CODE.get(name, {})
    words = [f'"class": "{made.__name__}"', *(f'"{field}": {str(given[field]).lower()}' for field in (*FIELDS, "global_head_dim") if given.get(field) is not None)]
    return f'"{name}": {{{", ".join(words)}}}'


def table(source):
    lines = ",\n".join(line(name) for name in types(source) if name in CONFIG_MAPPING_NAMES)
    return f"""// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Written by scripts/model_defaults.py from the classes of transformers {transformers.__version__}: src/transformers/models/*/configuration_*.py
// of https://github.com/huggingface/transformers. A type that is not here has no class there, and no defaults.
R"json({{
"source": "transformers {transformers.__version__}",
{lines}
}})json"
"""


if __name__ == "__main__":
    sys.stdout.write(table(sys.argv[1]))
