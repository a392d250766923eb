//! The project's documents refer only to files, headings, functions and dependencies that exist.

mod dependencies;
mod equivalents;
mod links;
mod names;
mod shown;
mod site;
mod unit;
mod yaml;

/// The texts in backquotes, each within one line, with their line numbers.
fn quoted(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    lines.flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |it| (number, it)))
}
