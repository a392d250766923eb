//! The three calls of bpf(2) that the packet generator needs.
//!
//! Each program has a dozen instructions, which are written here, so that nothing must be compiled or loaded from a file.

#![allow(unsafe_code, reason = "bpf(2) has no safe interface")]

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TEST_RUN: libc::c_int = 10;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
/// Sends the frames of a test run out of a device.
const LIVE_FRAMES: u32 = 1 << 1;
/// The kernel requires this field, although the programs call no GPL-only helpers.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// One instruction.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Instruction {
    /// The operation.
    pub code: u8,
    /// Source register in the upper four bits, destination in the lower.
    pub registers: u8,
    /// Offset of a memory access or jump.
    pub offset: i16,
    /// A constant.
    pub immediate: i32,
}

#[derive(Default)]
#[repr(C)]
struct LoadAttributes {
    kind: u32,
    instructions_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
}

#[derive(Default)]
#[repr(C)]
struct TestAttributes {
    program: u32,
    result: u32,
    data_in_bytes: u32,
    data_out_bytes: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_in_bytes: u32,
    context_out_bytes: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

#[derive(Default)]
#[repr(C)]
struct LinkAttributes {
    program: u32,
    device: u32,
    kind: u32,
    flags: u32,
}

/// `struct xdp_md`.
#[derive(Default)]
#[repr(C)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_device: u32,
    receive_queue: u32,
    egress_device: u32,
}

fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the attributes are plain data in the kernel's layout and live during the call; their size is passed. Every
    // pointer in them points to a slice that the caller holds during the call, and the length of the slice is passed, too.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>())
    };
    match i32::try_from(result) {
        Ok(result @ 0..) => Ok(result),
        Ok(_) | Err(_) => Err(io::Error::last_os_error()),
    }
}

fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: the kernel has just created this descriptor for the caller; no other code knows it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn raw(descriptor: &OwnedFd) -> u32 {
    descriptor.as_raw_fd().unsigned_abs()
}

/// An XDP program in the kernel.
#[derive(Debug)]
pub struct Program(OwnedFd);

/// A program attached to a device. Dropping it detaches the program.
#[derive(Debug)]
pub struct AttachedProgram {
    _link: OwnedFd,
    _program: Program,
}

impl Program {
    /// Loads a program.
    pub fn load(instructions: &[Instruction]) -> io::Result<Self> {
        let mut attributes = LoadAttributes {
            kind: BPF_PROG_TYPE_XDP,
            instructions_count: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            ..LoadAttributes::default()
        };
        bpf(BPF_PROG_LOAD, &mut attributes).map(|descriptor| Self(owned(descriptor)))
    }

    /// Attaches the program to a device of the calling thread's network namespace.
    pub fn attach(self, device: u32) -> io::Result<AttachedProgram> {
        let mut attributes =
            LinkAttributes { program: raw(&self.0), device, kind: BPF_XDP, flags: 0 };
        let link = owned(bpf(BPF_LINK_CREATE, &mut attributes)?);
        Ok(AttachedProgram { _link: link, _program: self })
    }

    /// Sends `count` copies of a frame out of a device of the calling thread's network namespace. The program modifies
    /// each copy, and must end with `XDP_TX`.
    pub fn send(&self, device: u32, frame: &[u8], count: u32, batch: u32) -> io::Result<()> {
        let context =
            Context { data_end: frame.len() as u32, ingress_device: device, ..Context::default() };
        let mut attributes = TestAttributes {
            program: raw(&self.0),
            data_in_bytes: frame.len() as u32,
            data_in: frame.as_ptr() as u64,
            repeat: count,
            context_in_bytes: size_of::<Context>() as u32,
            context_in: (&raw const context) as u64,
            flags: LIVE_FRAMES,
            batch,
            ..TestAttributes::default()
        };
        bpf(BPF_PROG_TEST_RUN, &mut attributes).map(drop)
    }
}
