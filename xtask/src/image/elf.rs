//! Section names of an executable.

/// Offsets in the header of a 64-bit file: of the section table, of the size and number of its entries, and of
/// the index of the entry with the names.
const SECTION_TABLE_OFFSET: usize = 0x28;
const ENTRY_SIZE: usize = 0x3a;
const ENTRY_COUNT: usize = 0x3c;
const NAMES_INDEX: usize = 0x3e;
/// Where an entry has the offset of its section.
const SECTION_OFFSET: usize = 0x18;

/// A list of scripts for debuggers: a few bytes of the standard library, and no debug information.
const GDB_SCRIPTS_SECTION: &str = ".debug_gdb_scripts";

/// The sections that hold debug information. None if the file is no little-endian ELF file of 64 bits.
pub(super) fn debug_sections(elf: &[u8]) -> Option<Vec<String>> {
    let names = section_names(elf)?;
    Some(names.into_iter().filter(|name| name.starts_with(".debug_") && name != GDB_SCRIPTS_SECTION).collect())
}

fn section_names(elf: &[u8]) -> Option<Vec<String>> {
    elf.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let table = read_number(elf, SECTION_TABLE_OFFSET, 8)?;
    let size = read_number(elf, ENTRY_SIZE, 2)?;
    let entry = |index: usize| table.checked_add(index.checked_mul(size)?);
    let names = read_number(elf, entry(read_number(elf, NAMES_INDEX, 2)?)?.checked_add(SECTION_OFFSET)?, 8)?;
    let name = |index: usize| {
        let start = names.checked_add(read_number(elf, entry(index)?, 4)?)?;
        let text = elf.get(start..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    (0..read_number(elf, ENTRY_COUNT, 2)?).map(name).collect()
}

/// A little-endian number of this length.
fn read_number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let digits = bytes.get(at..at.checked_add(length)?)?.iter().rev();
    let value = digits.fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_a_program_are_listed() {
        let mut program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let names = section_names(&program).unwrap();
        assert!(names.iter().any(|name| name == ".text"), "{names:?}");
        // Whether the test binary has debug information depends on the profile, so a section gets such a name.
        let renamed = program.windows(10).rposition(|bytes| bytes == b"\0.comment\0").unwrap();
        program[renamed..renamed + 10].copy_from_slice(b"\0.debug_a\0");
        assert!(debug_sections(&program).unwrap().iter().any(|name| name == ".debug_a"), "{names:?}");
        assert_eq!(section_names(b"#!/bin/sh\n"), None);
        assert_eq!(section_names(&program[..100]), None, "a file that was cut");
    }
}
