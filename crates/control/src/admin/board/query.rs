//! What a dashboard asks for.

/// The query parameters of the stream.
#[derive(Debug, Default)]
pub(super) struct BoardQuery {
    pub view: String,
    /// The name of the object in the view.
    pub name: String,
    /// The text of the search.
    pub words: Vec<String>,
    /// The number of the page, from 1.
    pub page: usize,
    /// The number of rows per page.
    pub rows: usize,
}
