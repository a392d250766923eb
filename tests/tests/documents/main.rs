//! The project's documents name existing things: files, headings, functions, dependencies.

mod dependencies;
mod equivalents;
mod links;
mod names;
mod shown;
mod site;
mod unit;

/// The texts between backquotes on one line, with the number of the line.
fn quoted(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    lines.flat_map(|(number, line)| line.split('`').skip(1).step_by(2).map(move |it| (number, it)))
}
