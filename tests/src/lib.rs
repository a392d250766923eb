//! Shared harness of the scenario tests.
