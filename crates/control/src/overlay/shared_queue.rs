//! A queue whose copies share what they have in common.
//!
//! The items are in pieces, and a copy has a pointer to each. To add an item copies the last piece, to take one the first.

use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of items in a piece. All pieces but the first and the last have as many.
const PIECE_MAX: usize = 128;

/// Items in the order in which they were added.
#[derive(Debug, Clone)]
pub(super) struct SharedQueue<T> {
    /// None is empty.
    pieces: VecDeque<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for SharedQueue<T> {
    fn default() -> Self {
        Self { pieces: VecDeque::new(), len: 0 }
    }
}

impl<T: Clone> SharedQueue<T> {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The item at this place.
    pub fn get(&self, index: usize) -> Option<&T> {
        let first = self.pieces.front()?;
        if let Some(item) = first.get(index) {
            return Some(item);
        }
        let behind = index - first.len();
        self.pieces.get(1 + behind / PIECE_MAX)?.get(behind % PIECE_MAX)
    }

    /// The newest item.
    pub fn newest(&self) -> Option<&T> {
        self.pieces.back()?.last()
    }

    /// All items, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        (0..self.len).map(|index| self.get(index).expect("it is below the number of items"))
    }

    /// Adds the newest item.
    pub fn push(&mut self, item: T) {
        self.len += 1;
        match self.pieces.back_mut().filter(|piece| piece.len() < PIECE_MAX) {
            Some(piece) => Arc::make_mut(piece).push(item),
            None => self.pieces.push_back(Arc::new(vec![item])),
        }
    }

    /// Removes the oldest item, and returns it.
    pub fn take_oldest(&mut self) -> Option<T> {
        let oldest = Arc::make_mut(self.pieces.front_mut()?).remove(0);
        if self.pieces.front().is_some_and(|piece| piece.is_empty()) {
            self.pieces.pop_front();
        }
        self.len -= 1;
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same operations on a queue of the standard library.
    #[test]
    fn it_is_a_queue_whose_copies_stay() {
        let (mut queue, mut model) = (SharedQueue::default(), VecDeque::new());
        let mut former = Vec::new();
        for number in 1..2_000 {
            queue.push(number);
            model.push_back(number);
            // It becomes longer, then shorter, and empty in the end.
            let goes = if number < 1_000 { number % 2 } else { 2 + number % 2 };
            for _ in 0..goes {
                assert_eq!(queue.take_oldest(), model.pop_front());
            }
            if number % 50 == 0 {
                former.push((queue.clone(), model.clone()));
            }
        }
        assert_eq!((queue.len(), queue.newest()), (0, None));
        assert!(former.iter().any(|(_, model)| model.len() > 3 * PIECE_MAX));
        for (queue, model) in former {
            assert!(queue.iter().eq(model.iter()) && queue.iter().rev().eq(model.iter().rev()));
            assert_eq!(queue.newest(), model.back());
            assert_eq!((queue.len(), queue.get(queue.len())), (model.len(), None));
        }
    }

    #[test]
    fn copies_share_what_is_the_same() {
        let mut queue = SharedQueue::default();
        (1..=10_000).for_each(|number| queue.push(number));
        let mut copy = queue.clone();
        copy.push(10_001);
        copy.take_oldest();
        let both = queue.pieces.iter().zip(&copy.pieces);
        let others = both.filter(|(one, other)| !Arc::ptr_eq(one, other)).count();
        assert_eq!((others, queue.len(), copy.len()), (2, 10_000, 10_000));
    }
}
