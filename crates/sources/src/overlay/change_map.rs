//! Changes by their paths, in order.
//!
//! Versions follow each other with few differences, and each has an overlay. So copies share what they have in common: the changes
//! are in pieces, and a change of one piece copies that one alone. To compare two copies costs the pieces that they do not share.
//!
//! | operation on n changes | cost |
//! |---|---|
//! | copy | one pointer per piece |
//! | find | O(log n) |
//! | insert, remove | O(log n), a copy of one piece, and its place among the pieces |
//! | compare | the pieces that are not shared |

use std::cmp::Ordering;
use std::sync::Arc;

use super::Change;

/// Maximum number of changes in a piece.
const PIECE_MAX: usize = 64;

/// Changes with consecutive paths; never empty.
type Piece = Arc<Vec<Arc<Change>>>;

/// Changes, ordered by their paths; one per path.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeMap {
    pieces: Vec<Piece>,
    len: usize,
}

/// A change of the former map, and that of the later one, at one path.
type Both<'a> = (Option<&'a Arc<Change>>, Option<&'a Arc<Change>>);

impl ChangeMap {
    /// The number of changes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// All changes, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Change>> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// The change at this path.
    pub fn get(&self, path: &str) -> Option<&Arc<Change>> {
        let piece = self.pieces.get(self.piece_of(path))?;
        place_in(piece, path).ok().map(|place| &piece[place])
    }

    /// The changes at paths from `from` on, before `to`.
    pub fn range<'a>(&'a self, from: &str, to: &'a str) -> impl Iterator<Item = &'a Arc<Change>> {
        let first = self.piece_of(from);
        let skipped = self.pieces.get(first).map_or(0, |piece| match place_in(piece, from) {
            Ok(place) | Err(place) => place,
        });
        let pieces = self.pieces.get(first..).unwrap_or_default();
        let all = pieces.iter().flat_map(|piece| piece.iter()).skip(skipped);
        all.take_while(move |change| change.path().as_str() < to)
    }

    /// Adds a change. Returns the former one at its path.
    pub fn insert(&mut self, change: Arc<Change>) -> Option<Arc<Change>> {
        let path = change.path().as_str();
        // Behind all others, it belongs to the last piece.
        let index = self.piece_of(path).min(self.pieces.len().saturating_sub(1));
        let Some(piece) = self.pieces.get_mut(index) else {
            self.pieces.push(Arc::new(vec![change]));
            self.len = 1;
            return None;
        };
        let place = place_in(piece, path);
        let piece = Arc::make_mut(piece);
        match place {
            Ok(place) => return Some(std::mem::replace(&mut piece[place], change)),
            Err(place) => piece.insert(place, change),
        }
        self.len += 1;
        if piece.len() > PIECE_MAX {
            let behind = piece.split_off(PIECE_MAX / 2);
            self.pieces.insert(index + 1, Arc::new(behind));
        }
        None
    }

    /// Removes the change at this path, and returns it.
    pub fn remove(&mut self, path: &str) -> Option<Arc<Change>> {
        let index = self.piece_of(path);
        let piece = self.pieces.get_mut(index)?;
        let place = place_in(piece, path).ok()?;
        let piece = Arc::make_mut(piece);
        let removed = piece.remove(place);
        self.len -= 1;
        let left = piece.len();
        // A neighbour takes a small piece in, so that there are never many.
        let next = self.pieces.get(index + 1).map_or(PIECE_MAX, |next| next.len());
        if left == 0 {
            self.pieces.remove(index);
        } else if left + next <= PIECE_MAX / 2 {
            let next = self.pieces.remove(index + 1);
            Arc::make_mut(&mut self.pieces[index]).extend(next.iter().cloned());
        }
        Some(removed)
    }

    /// The paths at which this map and a later one differ, in order, with the change of each.
    pub fn differences<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = Both<'a>> {
        let (mut one, mut other) = (Cursor::new(self), Cursor::new(later));
        std::iter::from_fn(move || {
            loop {
                if one.shares_piece_with(&other) {
                    one.pass_piece();
                    other.pass_piece();
                    continue;
                }
                let (before, after) = match (one.peek(), other.peek()) {
                    (None, None) => return None,
                    (Some(before), Some(after)) if Arc::ptr_eq(before, after) => {
                        one.pass();
                        other.pass();
                        continue;
                    }
                    (Some(before), Some(after)) => match before.path().cmp(after.path()) {
                        Ordering::Less => (Some(before), None),
                        Ordering::Greater => (None, Some(after)),
                        Ordering::Equal => (Some(before), Some(after)),
                    },
                    one_of_them => one_of_them,
                };
                before.inspect(|_| one.pass());
                after.inspect(|_| other.pass());
                if before.zip(after).is_none_or(|(before, after)| before != after) {
                    return Some((before, after));
                }
            }
        })
    }

    /// The index of the piece that has this path, or may get it.
    fn piece_of(&self, path: &str) -> usize {
        let is_before = |piece: &Piece| piece.last().is_some_and(|it| it.path().as_str() < path);
        self.pieces.partition_point(is_before)
    }
}

impl PartialEq for ChangeMap {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.differences(other).next().is_none()
    }
}

/// The place of a path in a piece, or where it would be.
fn place_in(piece: &[Arc<Change>], path: &str) -> Result<usize, usize> {
    piece.binary_search_by(|change| change.path().as_str().cmp(path))
}

/// A place among the changes of a map.
struct Cursor<'a> {
    pieces: std::slice::Iter<'a, Piece>,
    /// The piece of the place; `None`: all changes have been passed.
    piece: Option<&'a Piece>,
    place: usize,
}

impl<'a> Cursor<'a> {
    fn new(map: &'a ChangeMap) -> Self {
        let mut pieces = map.pieces.iter();
        Self { piece: pieces.next(), pieces, place: 0 }
    }

    fn peek(&self) -> Option<&'a Arc<Change>> {
        self.piece.map(|piece| &piece[self.place])
    }

    fn pass(&mut self) {
        self.place += 1;
        if self.piece.is_some_and(|piece| self.place == piece.len()) {
            self.pass_piece();
        }
    }

    fn pass_piece(&mut self) {
        (self.piece, self.place) = (self.pieces.next(), 0);
    }

    /// Whether both are at the beginning of the same piece.
    fn shares_piece_with(&self, other: &Self) -> bool {
        let both = self.piece.zip(other.piece);
        let is_same = both.is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        is_same && self.place == 0 && other.place == 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::json;
    use weir_testing::Random;

    use super::super::Pointer;
    use super::*;

    fn change(path: &str, value: usize) -> Arc<Change> {
        let path = Pointer::parse(path).expect("a path");
        Arc::new(Change::Set { path, value: json!(value) })
    }

    /// The same operations on a map of the standard library.
    #[test]
    fn it_is_a_map() {
        let mut random = Random::new(7);
        let (mut map, mut model) = (ChangeMap::default(), BTreeMap::new());
        let mut former = Vec::new();
        for step in 0..20_000 {
            // It grows, and then shrinks.
            let path = format!("/a/{:03}", random.below(600));
            if random.below(20_000) > step {
                let new = change(&path, step % 5);
                assert_eq!(map.insert(Arc::clone(&new)), model.insert(path.clone(), new));
            } else {
                assert_eq!(map.remove(&path), model.remove(&path));
            }
            assert_eq!((map.get(&path), map.len()), (model.get(&path), model.len()));
            if step % 500 == 0 {
                assert!(map.iter().eq(model.values()));
                let (from, to) = (path, format!("/a/{:03}", random.below(600)));
                if from < to {
                    let expected = model.range(from.clone()..to.clone());
                    assert!(map.range(&from, &to).eq(expected.map(|(_, change)| change)));
                }
                former.push((map.clone(), model.clone()));
            }
            assert!(map.pieces.iter().all(|piece| (1..=PIECE_MAX).contains(&piece.len())));
        }
        // Copies are what they were.
        for (one, of_one) in &former {
            assert!(one.iter().eq(of_one.values()));
            for (other, of_other) in &former {
                let found: Vec<_> = one.differences(other).collect();
                let paths: BTreeSet<_> = of_one.keys().chain(of_other.keys()).collect();
                let both = paths.into_iter().map(|path| (of_one.get(path), of_other.get(path)));
                let expected: Vec<_> = both.filter(|(one, other)| one != other).collect();
                assert_eq!(found, expected);
                assert_eq!(one == other, of_one == of_other);
            }
        }
    }

    #[test]
    fn copies_share_what_is_the_same() {
        let mut map = ChangeMap::default();
        for number in 0..10_000 {
            map.insert(change(&format!("/a/{number:05}"), 1));
        }
        assert!(map.pieces.len() < 2 * 10_000 / PIECE_MAX + 2);
        let mut copy = map.clone();
        copy.insert(change("/a/05000", 2));
        copy.insert(change("/a/05000x", 2));
        copy.remove("/a/07000");
        let is_shared = |piece: &&Piece| map.pieces.iter().any(|it| Arc::ptr_eq(it, piece));
        let others = copy.pieces.iter().filter(|piece| !is_shared(piece)).count();
        assert!(others <= 4, "{others}");
        let differing = map.differences(&copy).map(|(one, other)| one.or(other).expect("a change"));
        let differing: Vec<&str> = differing.map(|change| change.path().as_str()).collect();
        assert_eq!(differing, ["/a/05000", "/a/05000x", "/a/07000"]);
    }
}
