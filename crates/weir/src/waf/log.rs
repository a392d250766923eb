//! Lines of the web application firewall's log; `docs/observability.md` describes them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use weir_control::firewall::line::Line;

/// Maximum size of a line; longer lines are skipped.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Counts of lines.
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
