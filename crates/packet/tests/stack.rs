//! The stack of the programs, as Linux before 6.9 counts it: each function takes a multiple of 32 bytes. Newer kernels count 16.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::ElfFile64;
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex,
    SectionKind, SymbolKind,
};

/// `MAX_BPF_STACK`: of all functions that call each other.
const STACK_BYTES_MAX: u64 = 512;
/// `MAX_CALL_FRAMES`.
const FRAMES_MAX: usize = 8;
const ROUNDED_TO_BYTES: u64 = 32;

const INSTRUCTION_BYTES: u64 = 8;
const CALL: u8 = 0x85;
const LOAD_ADDRESS: u8 = 0x18;
const MOVE: u8 = 0xbf;
const ADD_NUMBER: u8 = 0x07;
/// A call of another function of the object, in the place of the source register.
const OF_OBJECT: u8 = 1;
const FRAME_POINTER: u8 = 10;

/// The place of a function: the index of its section, and its offset in that.
type Place = (usize, u64);

struct Function {
    name: String,
    bytes: u64,
    stack_bytes: u64,
    calls: BTreeSet<Place>,
}

struct Instruction {
    code: u8,
    target: u8,
    source: u8,
    offset: i16,
    number: i32,
}

impl Instruction {
    fn at(code: &[u8], offset: u64) -> Self {
        let at = offset as usize;
        let bytes: [u8; 8] = code[at..at + 8].try_into().expect("eight bytes");
        Self {
            code: bytes[0],
            target: bytes[1] & 0xf,
            source: bytes[1] >> 4,
            offset: i16::from_le_bytes([bytes[2], bytes[3]]),
            number: i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        }
    }

    /// The distance below the frame pointer that it reads or writes at.
    fn depth(&self) -> i64 {
        let is_load = self.code & 7 == 1 && self.source == FRAME_POINTER;
        let is_store = matches!(self.code & 7, 2 | 3) && self.target == FRAME_POINTER;
        if is_load || is_store { -i64::from(self.offset) } else { 0 }
    }
}

/// The functions of the object.
fn functions() -> BTreeMap<Place, Function> {
    let bytes = std::fs::read("bpf/packet.bpf.o").expect("the object");
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).expect("an ELF file");
    let mut found = BTreeMap::new();
    for symbol in
        file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
    {
        let section = symbol.section_index().expect("its section").0;
        let name = symbol.name().expect("its name").to_owned();
        let function =
            Function { name, bytes: symbol.size(), stack_bytes: 0, calls: BTreeSet::new() };
        found.insert((section, symbol.address()), function);
    }
    for (&(section, start), function) in &mut found {
        let section = file.section_by_index(SectionIndex(section)).expect("its section");
        let code = section.data().expect("its code");
        let targets: BTreeMap<u64, RelocationTarget> = section
            .relocations()
            .map(|(offset, relocation)| (offset, relocation.target()))
            .collect();
        // Calls of functions in other sections have a symbol: of the function, or of its section, where the offset is in the number.
        let place_of = |at: u64, own: Option<u64>, in_section: u64| match targets.get(&at) {
            None => own.map(|offset| (section.index().0, offset)),
            Some(RelocationTarget::Symbol(index)) => {
                let symbol = file.symbol_by_index(*index).expect("a symbol");
                let target = symbol.section_index()?;
                let kind = file.section_by_index(target).expect("its section").kind();
                match symbol.kind() {
                    SymbolKind::Text => Some((target.0, symbol.address())),
                    SymbolKind::Section if kind == SectionKind::Text => {
                        Some((target.0, in_section))
                    }
                    _ => None,
                }
            }
            Some(_) => None,
        };
        let mut copied_to: Option<(u8, u64)> = None;
        let mut at = start;
        while at < start + function.bytes {
            let it = Instruction::at(code, at);
            let mut depth = it.depth();
            // Otherwise the distance below the frame pointer is not known here.
            let is_known = copied_to.is_none_or(|(register, copied_at)| {
                copied_at + INSTRUCTION_BYTES != at
                    || it.code == ADD_NUMBER && it.target == register
            });
            assert!(is_known, "{} at {at}: a copy of the frame pointer", function.name);
            match it.code {
                MOVE if it.source == FRAME_POINTER => copied_to = Some((it.target, at)),
                ADD_NUMBER if copied_to == Some((it.target, at - INSTRUCTION_BYTES)) => {
                    depth = -i64::from(it.number)
                }
                CALL if it.source == OF_OBJECT => {
                    let words = i64::from(it.number) + 1;
                    let own = at as i64 + words * INSTRUCTION_BYTES as i64;
                    let place =
                        place_of(at, Some(own as u64), (words * INSTRUCTION_BYTES as i64) as u64);
                    function.calls.insert(place.expect("a function"));
                }
                // The function that a helper calls back.
                LOAD_ADDRESS => function.calls.extend(place_of(at, None, it.number as u64)),
                _ => {}
            }
            function.stack_bytes = function.stack_bytes.max(depth.max(0) as u64);
            at += if it.code == LOAD_ADDRESS { 2 * INSTRUCTION_BYTES } else { INSTRUCTION_BYTES };
        }
    }
    found
}

/// The calls from a function on that take the most stack, with the bytes of each.
fn deepest(all: &BTreeMap<Place, Function>, place: Place) -> (u64, Vec<String>) {
    let function = &all[&place];
    let calls = function.calls.iter().map(|call| deepest(all, *call));
    let (below, mut path) = calls.max().unwrap_or_default();
    path.insert(0, format!("{} {}", function.name, function.stack_bytes));
    (function.stack_bytes.max(1).next_multiple_of(ROUNDED_TO_BYTES) + below, path)
}

/// The largest number of functions that call each other from a function on.
fn frames(all: &BTreeMap<Place, Function>, place: Place) -> usize {
    1 + all[&place].calls.iter().map(|call| frames(all, *call)).max().unwrap_or(0)
}

#[test]
fn the_stack_is_enough_for_older_kernels() {
    let all = functions();
    for name in ["weirgate_xdp", "weirgate_tcx"] {
        let place = all.iter().find(|(_, function)| function.name == name);
        let (place, _) = place.unwrap_or_else(|| panic!("{name} is not in the object"));
        let (bytes, path) = deepest(&all, *place);
        println!("{name}: {bytes} bytes by {}", path.join(", "));
        assert!(path.len() > 3, "calls were not found: {path:?}");
        assert!(bytes <= STACK_BYTES_MAX, "{bytes} bytes by {}", path.join(", "));
        assert!(frames(&all, *place) <= FRAMES_MAX, "{name}");
    }
    let called_back = all.values().find(|function| function.name == "try_flow").expect("try_flow");
    assert!(all.values().any(|it| it.calls.iter().any(|call| all[call].name == called_back.name)));
}
