//! Reads many entries of a hash map in one call. `unsafe`: aya has no safe call for BPF_MAP_LOOKUP_BATCH.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::bpf;

/// `BPF_MAP_LOOKUP_BATCH` of `enum bpf_cmd`.
const MAP_LOOKUP_BATCH: libc::c_int = 24;

/// The part of `union bpf_attr` for calls on batches.
#[repr(C)]
struct Attributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    elem_flags: u64,
    flags: u64,
}

/// The position of a walk: the kernel's number of a bucket.
pub type Place = u32;

/// Entries of a part of a map.
#[derive(Debug, Default)]
pub struct Batch {
    /// The keys, concatenated.
    pub keys: Vec<u8>,
    /// The values, concatenated.
    pub values: Vec<u8>,
    /// The position where the walk continues; `None`: this was the last part.
    pub next: Option<Place>,
}

/// Reads up to `entries_max` entries, in whole buckets, beginning at a position. The sizes are those of the map's
/// definition.
pub fn read(
    map: BorrowedFd<'_>,
    from: Option<Place>,
    entries_max: u32,
    key_bytes: usize,
    value_bytes: usize,
) -> io::Result<Batch> {
    let mut keys = vec![0u8; entries_max as usize * key_bytes];
    let mut values = vec![0u8; entries_max as usize * value_bytes];
    let place = from.unwrap_or_default();
    let mut next: Place = 0;
    let mut attributes = Attributes {
        in_batch: if from.is_some() { std::ptr::from_ref(&place) as u64 } else { 0 },
        out_batch: std::ptr::from_mut(&mut next) as u64,
        keys: keys.as_mut_ptr() as u64,
        values: values.as_mut_ptr() as u64,
        count: entries_max,
        map: map.as_raw_fd() as u32,
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: the attributes are those of the command and outlive the call; the buffers have room for `count` entries of the map's
    // sizes, and the kernel writes no more than that; a place is four bytes for hash maps.
    let result = unsafe { bpf::call(MAP_LOOKUP_BATCH, &mut attributes) };
    let entries = attributes.count as usize;
    let is_last = match result {
        Ok(_) => false,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
        Err(error) => return Err(error),
    };
    keys.truncate(entries * key_bytes);
    values.truncate(entries * value_bytes);
    Ok(Batch { keys, values, next: (!is_last).then_some(next) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout in the kernel's header: eight words, the fifth of two halves.
    #[test]
    fn attributes_are_as_the_kernel_has_them() {
        assert_eq!(size_of::<Attributes>(), 56);
        assert_eq!(std::mem::offset_of!(Attributes, count), 32);
        assert_eq!(std::mem::offset_of!(Attributes, elem_flags), 40);
    }
}
