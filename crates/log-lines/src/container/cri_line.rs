//! A line as containerd and CRI-O write it: time, stream, tags and content, separated by single blanks.

use crate::record::OutputStream;
use crate::timestamp::TimestampReader;

/// A CRI line, borrowed from the file.
pub(super) struct CriLine<'a> {
    pub(super) time: u64,
    pub(super) stream: OutputStream,
    /// Tags as written, such as `F` or `P:x`.
    pub(super) tags: &'a [u8],
    /// Whether its content is the end of what the container wrote as one line.
    pub(super) is_final: bool,
    pub(super) content: &'a [u8],
}

impl<'a> CriLine<'a> {
    /// Reads a line, without its line end. `None` if it is not of the format.
    #[inline]
    pub(super) fn read(line: &'a [u8], clock: &mut TimestampReader) -> Option<Self> {
        let (time, rest) = clock.read(line)?;
        let (stream, rest) = match rest.split_first_chunk::<8>()? {
            (b" stdout ", rest) => (OutputStream::Stdout, rest),
            (b" stderr ", rest) => (OutputStream::Stderr, rest),
            _ => return None,
        };
        // One tag is the rule. The content may be missing together with its blank where a reader has trimmed the line.
        let (tags, content) = match rest {
            [b'F' | b'P', b' ', content @ ..] => (rest.get(..1)?, content),
            _ => match memchr::memchr(b' ', rest) {
                Some(end) => (rest.get(..end)?, rest.get(end + 1..)?),
                None => (rest, &[][..]),
            },
        };
        let is_final = match tags {
            [b'F'] | [b'F', b':', ..] => true,
            [b'P'] | [b'P', b':', ..] => false,
            _ => return None,
        };
        Some(Self { time, stream, tags, is_final, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(OutputStream, String, bool, String)> {
        let line = CriLine::read(line.as_bytes(), &mut TimestampReader::default())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((line.stream, text(line.tags), line.is_final, text(line.content)))
    }

    #[test]
    fn lines_of_the_format_are_read() {
        use OutputStream::{Stderr, Stdout};
        for (line, stream, tags, is_final, content) in [
            ("2026-11-18T03:46:54.17267343Z stdout F one", Stdout, "F", true, "one"),
            ("2026-11-18T03:46:54Z stderr P one  two ", Stderr, "P", false, "one  two "),
            ("2026-11-18T03:46:54+07:00 stdout F ", Stdout, "F", true, ""),
            ("2026-11-18T03:46:54Z stdout F", Stdout, "F", true, ""),
            ("2026-11-18T03:46:54Z stdout F:x:y a b", Stdout, "F:x:y", true, "a b"),
            ("2026-11-18T03:46:54Z stdout P:x", Stdout, "P:x", false, ""),
        ] {
            assert_eq!(read(line), Some((stream, tags.to_owned(), is_final, content.to_owned())), "{line}");
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "plain text",
            "2026-11-18T03:46:54Z",
            "2026-11-18T03:46:54Z stdout",
            "2026-11-18T03:46:54Z stdin F x",
            "2026-11-18T03:46:54Z stdout X x",
            "2026-11-18T03:46:54Z stdout FULL x",
            "2026-11-18T03:46:54Z  stdout F x",
            "2026-99-18T03:46:54Z stdout F x",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
