# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types: the stub says what the extension has, and everything public is annotated and explained."""
import ast
import inspect
import pathlib
import unittest

import wavejit
from wavejit import _documented, _family_calls, _fields, _wavejit

PACKAGE = pathlib.Path(wavejit.__file__).parent


def arguments_of(node):
    return [argument.arg for argument in node.args.args]


def told_and_not_there(function):
    """Arguments of the engine's calls that rows in a function's docstring tell, and that the function has not."""
    there, found = inspect.signature(function).parameters, set()
    for family, kind in _family_calls.FAMILIES.items():
        headings = [heading for heading, said in _documented.rows_of(family) if _documented.as_text(heading, said) in function.__doc__]
        found.update(name for heading in headings for name in _documented.told_in(heading, inspect.signature(kind).parameters) if name not in there)
    return found


class Stub(unittest.TestCase):
    def test_it_has_what_the_extension_has(self):
        stub = ast.parse((PACKAGE / "_wavejit.pyi").read_text())
        functions = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
        classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
        there = {name: value for name, value in vars(_wavejit).items() if not name.startswith("_")}
        kinds = {name: kind for name, kind in vars(there.pop("calls")).items() if not name.startswith("_")}
        self.assertIn("softmax_lse", kinds)
        del classes["CallKinds"]
        of_a_call = classes.pop("NativeCall")
        self.assertEqual(set(there), set(functions) | set(classes))
        for name, node in functions.items():
            self.compare(node, there[name])
        for name, node in [*classes.items(), *((kind, of_a_call) for kind in kinds)]:
            value = kinds[name] if name in kinds else there[name]
            members = {each.name: each for each in node.body}
            public = {member for member in vars(value) if not member.startswith("_")} | {"__init__"}
            self.assertEqual(public, set(members), name)
            for member, each in members.items():
                if not any(getattr(mark, "id", "") == "property" for mark in each.decorator_list):
                    self.compare(each, getattr(value, member))

    def compare(self, node, function):
        """nanobind tells names and positions in its signature."""
        ((signature, *_),) = function.__nb_signature__
        told = ast.parse(f"{signature.splitlines()[-1]}: ...").body[0]
        names = arguments_of(told)
        if all(not name.startswith("arg") for name in names):
            self.assertEqual(names, arguments_of(node), node.name)
        self.assertEqual(len(names), len(arguments_of(node)), node.name)

    def test_the_package_is_typed(self):
        self.assertTrue((PACKAGE / "py.typed").exists())


class Arguments(unittest.TestCase):
    """python/bindings/arguments.def says something of each argument of each call, and of nothing else."""

    def names_of(self, family):
        return list(inspect.signature(_family_calls.FAMILIES[family]).parameters)[1:]

    def test_each_one_is_told_once(self):
        first = {name for heading, _ in _documented.rows_of(_documented.FIRST) for name in _documented.told_in(heading, self.names_of(_documented.FIRST))}
        for family in _family_calls.FAMILIES:
            names = self.names_of(family)
            told = [_documented.told_in(heading, names) for heading, _ in _documented.rows_of(family)]
            self.assertTrue(all(told), family)
            flat = [name for each in told for name in each]
            self.assertEqual(len(flat), len(set(flat)), family)
            self.assertEqual(set(names) - set(flat) - first, set(), family)

    def test_what_rows_set_is_an_argument(self):
        """A row of bindings/call_kinds.h with set_as needs its word in `__init__`, and nothing else. But for fields of parts that a family has no word for."""
        without = {"attention_forward": {"row_scales"}, "attention_backward": {"score_rounding", "splits"}, "attention_latent": {"score_rounding"},
                   "sparse_indexer": {"splits"}, "cache_append": {"row_scales"}}
        for family in _family_calls.FAMILIES:
            self.assertEqual(set(_fields.SETTERS[family]) - set(self.names_of(family)), without.get(family, set()), family)
        of_any = {name for family in _family_calls.FAMILIES for name in self.names_of(family)}
        self.assertEqual((set(_fields.FLAGS) | set(_fields.MASK_KINDS)) - of_any, set())

    def test_docstrings_have_them(self):
        for family in _family_calls.FAMILIES:
            text = getattr(wavejit.Engine, family).__doc__
            self.assertNotIn("{arguments}", text)
            for heading, said in _documented.rows_of(family):
                self.assertIn(heading, text)
                self.assertIn(said.split("\n")[0], text)
            shared = self.names_of(family) and f"as in `{_documented.FIRST}`." in text
            self.assertEqual(shared, family != _documented.FIRST, family)


class Public(unittest.TestCase):
    def names(self):
        for room in (wavejit, wavejit.cache):
            for name in room.__all__:
                yield name, getattr(room, name)

    def members(self, kind):
        """Its own, and those that it has from classes which no user names."""
        for of in kind.__mro__:
            if of is kind or (of.__module__.startswith("wavejit.") and getattr(wavejit, of.__name__, None) is not of):
                yield from vars(of).items()

    def functions(self):
        for name, value in self.names():
            if inspect.isfunction(value):
                yield name, value
            if inspect.isclass(value):
                self.assertTrue(value.__doc__, name)
                for member, function in self.members(value):
                    function = function.fget if isinstance(function, property) else function
                    if inspect.isfunction(function) and (not member.startswith("_") or member == "__init__"):
                        yield f"{name}.{member}", function

    def test_names_that_are_read_later(self):
        self.assertLessEqual(set(wavejit.__all__), set(dir(wavejit)))
        with self.assertRaisesRegex(AttributeError, "module 'wavejit' has no attribute 'profiler'"):
            wavejit.profiler  # noqa: B018

    def test_with_an_example(self):
        for name, value in self.names():
            with self.subTest(name):
                if inspect.isfunction(value) or (inspect.isclass(value) and value.__base__ is not wavejit.Error and wavejit.Error not in value.__bases__):
                    self.assertIn(">>> ", value.__doc__)

    def test_annotated_and_explained(self):
        plain = {"DeviceArray.engine", "DeviceArray.shape", "DeviceArray.ndim", "DeviceArray.size", "DeviceArray.nbytes", "DeviceArray.is_freed",
                 "Engine.device", "Engine.is_simulated", "Engine.is_closed"}  # fmt: skip
        count = 0
        for name, function in self.functions():
            with self.subTest(name):
                signature = inspect.signature(function)
                self.assertIsNot(signature.return_annotation, inspect.Signature.empty)
                for parameter in signature.parameters.values():
                    self.assertTrue(parameter.name == "self" or parameter.annotation is not inspect.Parameter.empty, parameter.name)
                self.assertTrue(function.__doc__ or name in plain or name.endswith("__init__"))
            count += 1
        self.assertGreater(count, 90)


if __name__ == "__main__":
    unittest.main()
