//! Colours and styles of live views. Colour is never the only sign.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::{Block, BorderType};

/// Colours, or no colours.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    colourful: bool,
}

impl Palette {
    /// Colours, unless NO_COLOR is set.
    pub fn of_environment() -> Self {
        let colourful = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { colourful }
    }

    /// Colours for tests.
    #[cfg(test)]
    pub const COLOURFUL: Self = Self { colourful: true };

    /// Text in a colour.
    pub fn colour(self, colour: Color) -> Style {
        if self.colourful { Style::new().fg(colour) } else { Style::new() }
    }

    /// A title.
    pub fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Text that matters less.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Text that reports a problem.
    pub fn trouble(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A box with a title.
    pub fn frame(self, title: String) -> Block<'static> {
        Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(self.faint())
            .title(Span::styled(format!(" {title} "), self.title()))
    }
}
