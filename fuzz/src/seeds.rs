//! Writes the conformance cases of `crates/http` into a corpus folder, one file per case:
//! `seeds CORPUS` fills `CORPUS/TARGET` for every target that reads what `crates/http` reads.

#[path = "../../crates/http/tests/cases/mod.rs"]
mod cases;

use std::path::Path;
use std::{env, fs, io};

fn write(folder: &Path, inputs: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, input) in inputs.enumerate() {
        fs::write(folder.join(format!("case-{number:03}")), input)?;
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let corpus = env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: seeds CORPUS"))?;
    let corpus = Path::new(&corpus);
    write(&corpus.join("request_head"), cases::requests().into_iter().map(|case| case.received))?;
    write(&corpus.join("response_head"), cases::responses().into_iter().map(|case| case.received))?;
    write(&corpus.join("chunked"), cases::body::cases().into_iter().map(|case| case.received))?;
    write(&corpus.join("cookies"), cases::cookies::FIELDS.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("forwarded"), cases::forwarded::FIELDS.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("proxy_protocol"), cases::proxy_protocol::headers().into_iter())
}
