//! Detaches pinned links at once. `unsafe`: aya has no safe calls for BPF_OBJ_GET of any object and for BPF_LINK_DETACH.
//!
//! Without that, the kernel detaches a program some time after its last pin and its last descriptor are gone, and until then another
//! program cannot be attached by XDP.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::bpf;

/// `BPF_OBJ_GET` and `BPF_LINK_DETACH` of `enum bpf_cmd`.
const OBJ_GET: libc::c_int = 7;
const LINK_DETACH: libc::c_int = 34;

/// The part of `union bpf_attr` for pinned objects.
#[repr(C)]
struct PinnedObject {
    path: u64,
    descriptor: u32,
    flags: u32,
}

/// The part of `union bpf_attr` for detaching a link.
#[repr(C)]
struct LinkDetach {
    link: u32,
}

/// Detaches a pinned link, and removes its pin. On kernels before 5.9, the program is detached a moment later.
///
/// # Errors
/// The pin cannot be removed.
pub fn detach(path: &Path) -> io::Result<()> {
    if let Ok(link) = open(path) {
        let mut attributes = LinkDetach { link: link.as_raw_fd() as u32 };
        // Without its pin and its descriptors, the link goes in any case.
        // SAFETY: the attributes are those of the command, and point to nothing.
        let _ = unsafe { bpf::call(LINK_DETACH, &mut attributes) };
    }
    std::fs::remove_file(path)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = PinnedObject { path: path.as_ptr() as u64, descriptor: 0, flags: 0 };
    // SAFETY: the attributes are those of the command; the path outlives the call, and ends with a zero.
    let descriptor = unsafe { bpf::call(OBJ_GET, &mut attributes) }?;
    // SAFETY: the kernel has returned a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout in the kernel's header.
    #[test]
    fn attributes_are_as_the_kernel_has_them() {
        assert_eq!((size_of::<PinnedObject>(), size_of::<LinkDetach>()), (16, 4));
        assert_eq!(std::mem::offset_of!(PinnedObject, descriptor), 8);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let error = detach(Path::new("/sys/fs/bpf/weir-nothing")).expect_err("there is no pin");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
