"""Build macros and the tests of the source tree's form."""
