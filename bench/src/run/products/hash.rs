//! SHA-256 of a program, which identifies the measured build.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};

const CHUNK_BYTES: usize = 256 * 1024;

/// SHA-256 of a program file; `None` for a script that starts another program: [`of_process`] finds that program.
pub fn of_program(program: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(program)?;
    let mut first = [0; 2];
    let read = file.read(&mut first)?;
    if &first[..read] == b"#!" {
        return Ok(None);
    }
    of_file(program).map(Some)
}

/// SHA-256 of the program that a process runs.
pub fn of_process(process: u32) -> io::Result<String> {
    of_file(Path::new(&format!("/proc/{process}/exe")))
}

fn of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut context = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            length => context.update(&chunk[..length]),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in context.finish().as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_scripts() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |text: &str, expected: Option<&str>| {
            let path = folder.path().join("program");
            std::fs::write(&path, text).expect("a file");
            assert_eq!(of_program(&path).expect("a hash").as_deref(), expected, "{text:?}");
        };
        // FIPS 180-2, appendix B.1.
        check("abc", Some("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
        check("", Some("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
        check("#!/usr/bin/env python3\n", None);
        assert!(of_program(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn a_process_is_its_program() {
        let own = std::env::current_exe().expect("this program");
        let of_process = of_process(std::process::id()).expect("a hash");
        assert_eq!(of_program(&own).expect("a hash"), Some(of_process));
    }
}
