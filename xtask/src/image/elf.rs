//! What an executable has in it: the names of its sections.

/// Where the header of a 64-bit file has the offset of the table of sections, the size and number of its entries, and which
/// of them holds the names.
const TABLE_OFFSET: usize = 0x28;
const ENTRY_SIZE: usize = 0x3a;
const ENTRY_COUNT: usize = 0x3c;
const NAMES_INDEX: usize = 0x3e;
/// Where an entry has the offset of what it describes.
const SECTION_OFFSET: usize = 0x18;

/// A list for debuggers which files to load: a few bytes that the standard library brings, and no debug information.
const SCRIPTS: &str = ".debug_gdb_scripts";

/// The sections that hold debug information. None if it is no little-endian ELF file of 64 bits.
pub(super) fn debug_sections(elf: &[u8]) -> Option<Vec<String>> {
    let names = section_names(elf)?;
    Some(names.into_iter().filter(|name| name.starts_with(".debug_") && name != SCRIPTS).collect())
}

fn section_names(elf: &[u8]) -> Option<Vec<String>> {
    elf.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (table, size) = (number(elf, TABLE_OFFSET, 8)?, number(elf, ENTRY_SIZE, 2)?);
    let entry = |index: usize| table.checked_add(index.checked_mul(size)?);
    let names = number(elf, entry(number(elf, NAMES_INDEX, 2)?)?.checked_add(SECTION_OFFSET)?, 8)?;
    let name = |index: usize| {
        let start = names.checked_add(number(elf, entry(index)?, 4)?)?;
        let text = elf.get(start..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    (0..number(elf, ENTRY_COUNT, 2)?).map(name).collect()
}

/// A little-endian number of so many bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let digits = bytes.get(at..at.checked_add(length)?)?.iter().rev();
    let value = digits.fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_a_program_are_listed() {
        // This test has the line tables that the profile of tests asks for.
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let names = section_names(&program).unwrap();
        assert!(names.iter().any(|name| name == ".text"), "{names:?}");
        assert!(debug_sections(&program).unwrap().iter().any(|name| name == ".debug_line"), "{names:?}");
        assert_eq!(section_names(b"#!/bin/sh\n"), None);
        assert_eq!(section_names(&program[..100]), None, "a file that was cut");
    }
}
