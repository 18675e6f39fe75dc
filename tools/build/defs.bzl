"""Macros for the project's Python targets: one target per file.

Third-party packages are not Bazel targets: they come from the environment that
tools/bazelw makes from requirements.txt. `deps` name first-party targets only.
"""

_ENV = {
    # The program's own folder is not on sys.path: a file like flags.py cannot
    # hide another package of that name, and imports begin at the root.
    "PYTHONSAFEPATH": "1",
    # TensorFlow's start-up notices would hide what a test or tool has to say.
    "TF_CPP_MIN_LOG_LEVEL": "2",
}

def _with_package(srcs):
    """Adds the folder's own __init__.py (the root folder has none)."""
    return srcs + [f for f in native.glob(["__init__.py"]) if f not in srcs]

def _with_env(env):
    merged = dict(_ENV)
    merged.update(env)
    return merged

def lg_py_library(name, srcs, **kwargs):
    """A Python module, importable by its path from the root."""
    native.py_library(
        name = name,
        srcs = _with_package(srcs),
        srcs_version = "PY3",
        **kwargs
    )

def lg_py_test(name, srcs, size = "small", env = {}, **kwargs):
    """A test program (absltest.main or tf.test.main).

    Args:
      name: target name, `<module>_test`.
      srcs: the test file, `<module>_test.py`.
      size: small (the default: well under a minute), medium, large, enormous;
        .bazelrc sets the time limit of each.
      env: environment variables, besides those every test gets.
      **kwargs: deps, data, tags, shard_count, ... of py_test.
    """
    native.py_test(
        name = name,
        srcs = _with_package(srcs),
        size = size,
        env = _with_env(env),
        python_version = "PY3",
        srcs_version = "PY3",
        **kwargs
    )

def lg_py_binary(name, srcs, env = {}, **kwargs):
    """A program for `tools/bazelw run`."""
    native.py_binary(
        name = name,
        srcs = _with_package(srcs),
        env = _with_env(env),
        python_version = "PY3",
        srcs_version = "PY3",
        **kwargs
    )
