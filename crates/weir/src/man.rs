//! `weir man`: man pages of all commands, generated from their help.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Command};
use clap_mangen::Man;
use weir_cli::output;

/// Write the man pages of all commands
///
/// Writes one page for each command: weir.1, weir-run.1, weir-check.1 and so on. The Debian package installs them. The pages
/// have the date of today, or of SOURCE_DATE_EPOCH (seconds since 1970) in the environment.
///
/// Exit status: 0 written; 1 a page could not be written; 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir man --into /usr/local/share/man/man1\n  \
                        weir man --into . && man ./weir-check.1")]
pub struct Arguments {
    /// Folder for the pages; made if it is missing
    #[arg(long, value_name = "FOLDER")]
    into: PathBuf,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments, command: Command) -> ExitCode {
    let date = date();
    let written =
        fs::create_dir_all(&arguments.into).map_err(|error| (error, None)).and_then(|()| {
            pages(command, &date).into_iter().try_for_each(|page| {
                let path = arguments.into.join(&page.name);
                page.write(&path).map_err(|error| (error, Some(path)))
            })
        });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err((error, path)) => {
            let path = path.as_ref().unwrap_or(&arguments.into).display();
            output::tell(format_args!("weir man: cannot write {path}: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// One man page.
struct Page {
    /// The file name: `weir-check.1`.
    name: String,
    text: Vec<u8>,
}

impl Page {
    fn of(command: Command, date: &str) -> Self {
        // For `weir member drain`, the name is `weir-member-drain`.
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let mut text = Vec::new();
        let source = concat!("weir ", env!("CARGO_PKG_VERSION"));
        let man = Man::new(command).title(name.to_uppercase()).date(date);
        let man = man.source(source).manual("Weirgate");
        man.render(&mut text).expect("a vector takes what is written to it");
        Self { name: format!("{name}.1"), text: tidied(&text) }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, &self.text)
    }
}

/// The date of the pages. Builds of a package set `SOURCE_DATE_EPOCH`, so that they can be repeated.
fn date() -> String {
    let epoch_s = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let unix_s: u64 = epoch_s.unwrap_or_else(now);
    let text = weir_control::time::rfc3339(unix_s.saturating_mul(1_000));
    text.split('T').next().unwrap_or_default().to_owned()
}

/// The text of a page without what formatters of man pages warn of: spaces at the end of a line, empty lines, and several `.br`.
/// Between two paragraphs stands `.sp`.
fn tidied(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let is_text = |line: &str| !line.is_empty() && !line.starts_with('.');
    let mut lines: Vec<&str> = Vec::new();
    let mut rest = text.lines().map(str::trim_end).peekable();
    while let Some(line) = rest.next() {
        if !line.is_empty() {
            lines.push(line);
        } else if lines.last().copied().is_some_and(is_text)
            && rest.peek().copied().is_some_and(is_text)
        {
            lines.push(".sp");
        }
    }
    lines.dedup_by(|line, before| line == before && *line == ".br");
    lines.into_iter().flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()
}

/// The pages of a command and of its subcommands.
fn pages(command: Command, date: &str) -> Vec<Page> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|it| !it.is_hide_set()).cloned());
        pages.push(Page::of(command, date));
    }
    pages
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::CommandLine;

    #[test]
    fn each_command_has_a_page() {
        let pages = pages(CommandLine::command(), "2026-01-31");
        let page = |name: &str| {
            let found = pages.iter().find(|page| page.name == name);
            String::from_utf8(found.unwrap_or_else(|| panic!("no {name}")).text.clone())
                .expect("text")
        };
        assert!(page("weir.1").contains("Application Delivery Controller"));
        let check = page("weir-check.1");
        assert!(check.contains("weir check"), "{check}");
        assert!(check.contains(".TH WEIR-CHECK 1 2026-01-31 \"weir "), "{check}");
        assert!(check.contains("\n.sp\n"), "{check}");
        assert!(!page("weir-top.1").contains("\n\n"));
        assert!(page("weir-waf-test.1").contains("weir waf test"));
        assert!(!pages.iter().any(|page| page.name.contains("help")));
        let names: std::collections::HashSet<_> = pages.iter().map(|page| &page.name).collect();
        assert_eq!(names.len(), pages.len());
    }
}
