//! Lines of the web application firewall's log; `docs/observability.md` describes them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Maximum size of a line; longer lines are skipped.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// An inspected request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Line {
    r#type: String,
    pub request_id: String,
    pub client: String,
    pub virtual_server: String,
    pub method: String,
    pub target: String,
    pub outcome: String,
    /// The rule that blocked the request; 0: none.
    pub rule: u64,
    pub score: i64,
    pub threshold: i64,
    pub rules: Vec<Found>,
    pub request: Option<Recorded>,
}

/// A rule that matched.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Found {
    pub id: u64,
    pub message: String,
    pub data: String,
    pub severity: String,
    pub tags: Vec<String>,
    pub file: String,
    pub values: Vec<Value>,
}

/// The values that matched.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Value {
    pub variable: String,
    pub value: String,
}

/// The request itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Recorded {
    pub head: String,
    pub member_target: Option<String>,
    pub body: Option<String>,
}

/// Numbers of lines that were read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Valid lines.
    pub lines: u64,
    /// Other lines.
    pub skipped: u64,
}

impl Count {
    /// A message about skipped lines.
    pub fn told_skipped(self) -> String {
        match self.skipped {
            0 => String::new(),
            1 => "; 1 other line was skipped".into(),
            skipped => format!("; {skipped} other lines were skipped"),
        }
    }
}

/// Passes all lines of these logs to `take` in order, until it fails.
pub fn each(
    paths: &[PathBuf],
    mut take: impl FnMut(&Line) -> Result<(), String>,
) -> Result<Count, String> {
    let mut count = Count::default();
    for path in paths {
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(wrong)?;
        let mut reader = BufReader::new(file);
        while let Some(bytes) = next(&mut reader, path)? {
            match serde_json::from_slice::<Line>(&bytes) {
                Ok(line) if line.r#type == "waf" => {
                    count.lines += 1;
                    take(&line)?;
                }
                _ => count.skipped += u64::from(!bytes.trim_ascii().is_empty()),
            }
        }
    }
    Ok(count)
}

/// The next line, or its beginning if it is too long.
fn next(reader: &mut BufReader<File>, path: &Path) -> Result<Option<Vec<u8>>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut bytes = Vec::new();
    reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes).map_err(wrong)?;
    if bytes.len() as u64 == LINE_BYTES_MAX && bytes.last() != Some(&b'\n') {
        reader.skip_until(b'\n').map_err(wrong)?;
    }
    Ok((!bytes.is_empty()).then_some(bytes))
}

/// The bytes of a logged text, in which a byte above ASCII is logged as the code point with its value.
pub fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|char| u8::try_from(u32::from(char)).unwrap_or(b'?')).collect()
}
