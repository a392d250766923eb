//! Takes an entry out of a hash map: it is read and removed in one step. `unsafe`: aya has no safe call for
//! BPF_MAP_LOOKUP_AND_DELETE_ELEM.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::bpf;

/// `BPF_MAP_LOOKUP_AND_DELETE_ELEM` of `enum bpf_cmd`.
const MAP_LOOKUP_AND_DELETE_ELEM: libc::c_int = 21;

/// The part of `union bpf_attr` for calls on single entries.
#[repr(C)]
struct Attributes {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Removes and returns the entry of a key; `None`: no entry. The sizes are those of the map.
pub fn take<const KEY: usize, const VALUE: usize>(
    map: BorrowedFd<'_>,
    key: &[u8; KEY],
) -> io::Result<Option<[u8; VALUE]>> {
    let mut value = [0; VALUE];
    let mut attributes = Attributes {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: key.as_ptr() as u64,
        value: value.as_mut_ptr() as u64,
        flags: 0,
    };
    // SAFETY: the attributes are those of the command; they, the key and the value outlive the call; the kernel reads a key and
    // writes a value of the map's sizes.
    match unsafe { bpf::call(MAP_LOOKUP_AND_DELETE_ELEM, &mut attributes) } {
        Ok(_) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_as_the_kernel_has_them() {
        assert_eq!(size_of::<Attributes>(), 32);
        assert_eq!(std::mem::offset_of!(Attributes, key), 8);
    }
}
