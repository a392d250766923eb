//! OWASP CRS, its regression tests, and the responses of its test backend.
//!
//! `WEIR_CRS` and `WEIR_CRS_TESTS` contain the rules and the tests (the folder of a checkout, and its `tests`). By default,
//! they are in `../shared`. Tests are skipped if they are missing.

pub mod answer;
pub mod data;
pub mod ftw;

/// The settings for CRS's own tests.
pub const SETTINGS: [(&str, &str); 10] = [
    ("blocking_paranoia_level", "4"),
    ("detection_paranoia_level", "4"),
    ("crs_validate_utf8_encoding", "1"),
    ("arg_name_length", "100"),
    ("arg_length", "400"),
    ("total_arg_length", "64000"),
    ("max_num_args", "255"),
    ("max_file_size", "64100"),
    ("combined_file_sizes", "65535"),
    ("sampling_percentage", "100"),
];
