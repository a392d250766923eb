//! Texts that no log, message or report shows.

use std::fmt;
use std::sync::Arc;

/// A password or a shared key. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// A secret with this text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The secret text, for sending it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_shown() {
        let secret = Secret::new("hunter2");
        assert_eq!((secret.expose(), format!("{secret:?}")), ("hunter2", "Secret(***)".to_owned()));
    }
}
