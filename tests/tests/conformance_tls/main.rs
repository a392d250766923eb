//! External test suites for TLS. They are not part of this repository; environment variables contain their paths.
//!
//! `WEIR_TESTSSL`: the program testssl, of Debian's `testssl.sh`, or `testssl.sh` of a checkout.
//! `WEIR_TLSFUZZER`: a checkout of tlsfuzzer/tlsfuzzer; `python3`, or the Python that `WEIR_PYTHON`
//! names, has its dependencies. `WEIR_TLSFUZZER_ONLY` names a script to run alone.

mod scripts;
mod testssl;
mod tlsfuzzer;
