//! Short texts in one buffer.

/// Short texts, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    text: Vec<u8>,
    ends: Vec<u32>,
}

impl Lines {
    /// Removes the texts and keeps the capacity.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The capacity for text in bytes.
    pub fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Appends the output of `write`.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.text);
        self.ends.push(self.text.len() as u32);
    }

    /// All texts.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start as usize..end as usize])
    }
}
