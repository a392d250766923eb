//! Storage for the objects of one worker, and keys that name them.
//!
//! A key has a type and a generation: it names the object that it was created for, or nothing, never a later object in
//! the same slot. There is no indexing: each access returns whether the object still exists. So a stale key ends one
//! piece of work, not the worker.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// Kind of [`ClientKey`]s: client connections.
pub enum OfClient {}
/// Kind of [`ExchangeKey`]s: exchanges.
pub enum OfExchange {}
/// Kind of [`ConnectionKey`]s: member connections.
pub enum OfConnection {}
/// Kind of [`ListenerKey`]s: listeners.
pub enum OfListener {}
/// Kind of [`SessionKey`]s: sessions of datagrams.
pub enum OfSession {}

/// Kind of [`StreamKey`]s: streams of one client connection.
pub enum OfStream {}
/// Kind of [`MemberStreamKey`]s: streams of one member connection.
pub enum OfMemberStream {}

/// The key of a client connection.
pub type ClientKey = Key<OfClient>;
/// The key of an exchange.
pub type ExchangeKey = Key<OfExchange>;
/// The key of a member connection.
pub type ConnectionKey = Key<OfConnection>;
/// The key of a stream of a client connection.
pub type StreamKey = Key<OfStream>;
/// The key of a stream of a member connection.
pub type MemberStreamKey = Key<OfMemberStream>;
/// The key of a session of datagrams.
pub type SessionKey = Key<OfSession>;
/// The key of a listener.
pub type ListenerKey = Key<OfListener>;

/// The key of one object in an [`Arena`], valid while the object exists.
pub struct Key<K> {
    slot: u32,
    generation: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Key<K> {
    /// A key that names no object.
    pub const NOTHING: Self = Self { slot: 0, generation: 0, kind: PhantomData };

    fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation, kind: PhantomData }
    }

    /// The key as a number, which is never 0.
    #[inline]
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    /// The key with this number; `None`: no key has it.
    #[inline]
    pub fn from_bits(bits: u64) -> Option<Self> {
        let generation = (bits >> 32) as u32;
        (generation != 0).then(|| Self::new(bits as u32, generation))
    }
}

impl<K> Clone for Key<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Key<K> {}

impl<K> PartialEq for Key<K> {
    fn eq(&self, other: &Self) -> bool {
        (self.slot, self.generation) == (other.slot, other.generation)
    }
}

impl<K> Eq for Key<K> {}

impl<K> PartialOrd for Key<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Key<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.slot, self.generation).cmp(&(other.slot, other.generation))
    }
}

impl<K> Hash for Key<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_bits().hash(state);
    }
}

impl<K> fmt::Debug for Key<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// The end of the list of free slots.
const NO_SLOT: u32 = u32::MAX;

/// A slot for one object.
pub struct Slot<T> {
    /// The generation of the current object, or of the next one if the slot is free; never 0.
    generation: u32,
    /// The next slot in the list of free slots, if this one is free.
    next_free: u32,
    content: Option<T>,
}

impl<T> Slot<T> {
    #[inline]
    fn is_of<K>(&self, key: Key<K>) -> bool {
        self.generation == key.generation
    }
}

/// The memory of an empty arena, for reuse by another one.
pub struct ArenaMemory<T>(Vec<Slot<T>>);

impl<T> ArenaMemory<T> {
    /// The number of objects that fit.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

/// Objects by key. A slot is reused with another generation.
pub struct Arena<K, T> {
    slots: Vec<Slot<T>>,
    free: u32,
    count: usize,
    /// The generation of the first object in a new slot.
    first_generation: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K, T> Default for Arena<K, T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NO_SLOT, count: 0, first_generation: 1, kind: PhantomData }
    }
}

impl<K, T> Arena<K, T> {
    /// Whether the arena is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The key of the next object.
    #[inline]
    pub fn next_key(&self) -> Key<K> {
        match self.slots.get(self.free as usize) {
            Some(slot) => Key::new(self.free, slot.generation),
            None => Key::new(self.slots.len() as u32, self.first_generation),
        }
    }

    /// Adds an object.
    #[inline]
    pub fn insert(&mut self, thing: T) -> Key<K> {
        let key = self.next_key();
        *self.vacant() = Some(thing);
        key
    }

    /// The slot for the next object; the caller must store an object in it at once. This avoids moving a large object.
    #[inline]
    pub fn vacant(&mut self) -> &mut Option<T> {
        let key = self.next_key();
        self.count += 1;
        let place = key.slot as usize;
        if place < self.slots.len() {
            self.free = self.slots[place].next_free;
        } else {
            assert!(key.slot != NO_SLOT, "there are no more slots");
            let generation = key.generation;
            self.slots.push(Slot { generation, next_free: NO_SLOT, content: None });
        }
        &mut self.slots[place].content
    }

    /// The object of this key, if it still exists.
    #[inline]
    pub fn get(&self, key: Key<K>) -> Option<&T> {
        let slot = self.slots.get(key.slot as usize)?;
        if slot.is_of(key) { slot.content.as_ref() } else { None }
    }

    /// The object of this key, if it still exists.
    #[inline]
    pub fn get_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if slot.is_of(key) { slot.content.as_mut() } else { None }
    }

    /// The object of this key, if there is a key and the object still exists.
    #[inline]
    pub fn find(&self, key: Option<Key<K>>) -> Option<&T> {
        self.get(key?)
    }

    /// The object of this key, if there is a key and the object still exists.
    #[inline]
    pub fn find_mut(&mut self, key: Option<Key<K>>) -> Option<&mut T> {
        self.get_mut(key?)
    }

    /// Whether the object of this key still exists.
    #[inline]
    pub fn contains(&self, key: Key<K>) -> bool {
        self.get(key).is_some()
    }

    /// Removes and returns the object of this key, if it still exists.
    #[inline]
    pub fn remove(&mut self, key: Key<K>) -> Option<T> {
        self.leave(key)?.content.take()
    }

    /// Drops the object of this key in place, if it still exists.
    #[inline]
    pub fn discard(&mut self, key: Key<K>) {
        if let Some(slot) = self.leave(key) {
            slot.content = None;
        }
    }

    /// Frees the slot of this key and returns it.
    #[inline]
    fn leave(&mut self, key: Key<K>) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        if !slot.is_of(key) || slot.content.is_none() {
            return None;
        }
        slot.generation = next_generation(slot.generation);
        slot.next_free = self.free;
        self.free = key.slot;
        self.count -= 1;
        Some(slot)
    }

    /// Replaces the object of this key, if it still exists. The key then names the new object.
    pub fn replace(&mut self, key: Key<K>, make: impl FnOnce(T) -> T) {
        if let Some(slot) = self.slots.get_mut(key.slot as usize).filter(|slot| slot.is_of(key)) {
            slot.content = slot.content.take().map(make);
        }
    }

    /// Removes all objects. Old keys then name nothing.
    pub fn clear(&mut self) {
        for at in 0..self.slots.len() {
            let key = Key::new(at as u32, self.slots[at].generation);
            drop(self.remove(key));
        }
    }

    /// Releases the memory if the arena is empty. Old keys continue to name nothing.
    pub fn give_room(&mut self) -> Option<ArenaMemory<T>> {
        if self.count > 0 {
            return None;
        }
        let generations = self.slots.iter().map(|slot| slot.generation);
        self.first_generation = generations.max().unwrap_or(self.first_generation);
        self.free = NO_SLOT;
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        (slots.capacity() > 0).then_some(ArenaMemory(slots))
    }

    /// Allocates memory for objects, if there is none yet.
    pub fn take_room(&mut self, room: ArenaMemory<T>) {
        if self.slots.capacity() == 0 {
            self.slots = room.0;
        }
    }

    /// Whether the arena has memory for objects.
    pub fn has_room(&self) -> bool {
        self.slots.capacity() > 0
    }

    /// All objects with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (Key<K>, &T)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| {
            let thing = slot.content.as_ref()?;
            Some((Key::new(at as u32, slot.generation), thing))
        })
    }

    /// The objects of `count` slots, beginning with slot `from`, each with the number of the slot after it.
    pub fn part(&self, from: usize, count: usize) -> impl Iterator<Item = (usize, Key<K>, &T)> {
        let slots = self.slots.iter().enumerate().skip(from).take(count);
        slots.filter_map(|(at, slot)| {
            let thing = slot.content.as_ref()?;
            Some((at + 1, Key::new(at as u32, slot.generation), thing))
        })
    }

    /// The number of slots, including free ones.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// All objects, mutable.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.content.as_mut())
    }
}

/// The next generation; after the last one follows the first.
fn next_generation(generation: u32) -> u32 {
    generation.checked_add(1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use weir_testing::Random;

    use super::*;

    #[test]
    fn parts_have_all_objects_once() {
        let mut arena: Arena<OfClient, u32> = Arena::default();
        let keys: Vec<_> = (0..10).map(|number| arena.insert(number)).collect();
        arena.remove(keys[3]);
        arena.remove(keys[9]);
        for count in 1..12 {
            let (mut at, mut seen) = (0, Vec::new());
            while at < arena.slots() {
                for (after, key, number) in arena.part(at, count) {
                    assert_eq!((arena.get(key), after), (Some(number), *number as usize + 1));
                    seen.push(*number);
                }
                at += count;
            }
            assert_eq!(seen, [0, 1, 2, 4, 5, 6, 7, 8], "{count}");
        }
        assert_eq!(arena.part(99, 5).count(), 0);
    }

    #[test]
    fn a_key_names_what_it_was_given_for_or_nothing() {
        let mut arena: Arena<OfClient, &str> = Arena::default();
        let first = arena.next_key();
        assert_eq!(arena.insert("first"), first);
        assert_eq!(arena.remove(first), Some("first"));
        let second = arena.insert("second");
        assert_eq!((second.slot, first.slot), (0, 0), "the slot is used again");
        assert_ne!(first, second);
        assert_eq!((arena.get(first), arena.get(second)), (None, Some(&"second")));
        assert_eq!(arena.remove(first), None);
        assert_eq!(arena.get_mut(second), Some(&mut "second"));
        arena.clear();
        assert_eq!((arena.get(second), arena.is_empty()), (None, true));
    }

    #[test]
    fn a_key_as_a_number() {
        let mut arena: Arena<OfClient, u8> = Arena::default();
        let key = arena.insert(1);
        assert_ne!(key.to_bits(), 0);
        assert_eq!(Key::from_bits(key.to_bits()), Some(key));
        assert_eq!(ClientKey::from_bits(0), None);
        assert_eq!(ClientKey::from_bits(7), None, "no thing has generation 0");
    }

    #[test]
    fn a_slot_that_has_had_all_generations() {
        assert_eq!(next_generation(1), 2);
        assert_eq!(next_generation(u32::MAX), 1);
    }

    #[test]
    fn memory_that_is_given_away_takes_no_keys_with_it() {
        let mut random = Random::new(1);
        let mut arenas: [Arena<OfClient, u64>; 2] = Default::default();
        let mut given = [HashMap::new(), HashMap::new()];
        let mut room = None;
        for step in 0..5_000u64 {
            let which = random.below(2);
            let arena = &mut arenas[which];
            if let Some(room) = room.take() {
                arena.take_room(room);
            }
            for number in 0..1 + random.below(3) as u64 {
                let key = arena.insert(step + number);
                assert!(given[which].insert(key, step).is_none(), "a key given twice");
            }
            assert!(arena.give_room().is_none(), "there are things in it");
            if random.below(3) > 0 {
                let keys: Vec<ClientKey> = arena.iter().map(|(key, _)| key).collect();
                assert!(keys.iter().all(|key| arena.remove(*key).is_some()));
                room = arena.give_room();
                assert!(room.is_some() && !arena.has_room());
                assert!(keys.iter().all(|key| arena.get(*key).is_none()));
            }
        }
    }

    /// Random operations: the results must equal those of a map that never reuses a key.
    #[test]
    fn does_as_a_map_does() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut arena: Arena<OfExchange, u64> = Arena::default();
            let mut map: HashMap<ExchangeKey, u64> = HashMap::new();
            let mut given = Vec::new();
            for step in 0..2_000u64 {
                if given.is_empty() || random.below(3) == 0 {
                    let key = arena.insert(step);
                    assert!(map.insert(key, step).is_none(), "seed {seed}: a key given twice");
                    given.push(key);
                } else {
                    let key = given[random.below(given.len())];
                    if random.below(2) == 0 {
                        assert_eq!(arena.remove(key), map.remove(&key), "seed {seed}");
                    } else {
                        assert_eq!(arena.get(key), map.get(&key), "seed {seed}");
                    }
                }
                assert_eq!(arena.count, map.len(), "seed {seed}");
            }
            let mut all: Vec<(ExchangeKey, u64)> =
                arena.iter().map(|(key, it)| (key, *it)).collect();
            all.sort_unstable();
            let mut expected: Vec<(ExchangeKey, u64)> = map.into_iter().collect();
            expected.sort_unstable();
            assert_eq!(all, expected, "seed {seed}");
        }
    }
}
