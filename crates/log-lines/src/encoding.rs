//! Encodings of the text in log files.

use std::borrow::Cow;

use encoding_rs::Encoding;

use crate::record::BodyKind;

/// How the bytes of a file are text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8, and so ASCII. What is neither becomes U+FFFD.
    #[default]
    Utf8,
    /// UTF-8 that is handed on unchecked. Backends may refuse requests with other bytes.
    RawUtf8,
    /// No text: each read is a record of bytes.
    Nop,
    /// ISO 8859-1, in which each byte is the character of its number.
    Latin1,
    /// UTF-16 without a byte order mark; a mark is a character of the first line.
    Utf16Le,
    /// UTF-16 with the bytes the other way round.
    Utf16Be,
    /// Any other encoding of the web that does not need state between lines.
    Other(&'static Encoding),
}

impl TextEncoding {
    /// The encoding with this name, whatever its case: those of the Collector, and those that IANA has registered, as
    /// far as browsers know them.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        Some(match name.as_str() {
            "" | "utf-8" | "utf8" | "ascii" | "us-ascii" => Self::Utf8,
            "utf-8-raw" => Self::RawUtf8,
            "nop" => Self::Nop,
            "iso-8859-1" | "iso_8859-1" | "latin1" | "l1" => Self::Latin1,
            "utf-16" | "utf16" | "utf-16le" => Self::Utf16Le,
            "utf-16be" => Self::Utf16Be,
            _ => Self::from_label(&name)?,
        })
    }

    /// An encoding by its name on the web. What browsers refuse to decode, or invented, is none.
    fn from_label(name: &str) -> Option<Self> {
        let encoding = Encoding::for_label(name.as_bytes())?;
        let is_text = encoding != encoding_rs::REPLACEMENT && encoding != encoding_rs::X_USER_DEFINED;
        match encoding {
            _ if encoding == encoding_rs::UTF_8 => Some(Self::Utf8),
            _ if encoding == encoding_rs::UTF_16LE => Some(Self::Utf16Le),
            _ if encoding == encoding_rs::UTF_16BE => Some(Self::Utf16Be),
            _ => is_text.then_some(Self::Other(encoding)),
        }
    }

    /// The kind of body that records have whose text is decoded.
    pub(crate) fn body_kind(self) -> BodyKind {
        match self {
            Self::RawUtf8 => BodyKind::RawText,
            Self::Nop => BodyKind::Bytes,
            _ => BodyKind::Text,
        }
    }

    /// Bytes of a line feed, and so of what a line is a multiple of.
    pub(crate) fn unit_bytes(self) -> usize {
        if matches!(self, Self::Utf16Le | Self::Utf16Be) { 2 } else { 1 }
    }

    /// Finds the first line feed. Returns the offset of its first byte.
    pub(crate) fn find_line_feed(self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Utf16Le => find_unit(text, [b'\n', 0]),
            Self::Utf16Be => find_unit(text, [0, b'\n']),
            // No other encoding uses the byte in other characters.
            _ => memchr::memchr(b'\n', text),
        }
    }

    /// Decodes a line. UTF-8 stays as it is, as the bytes of a record are checked when it is written.
    pub(crate) fn decode(self, text: &[u8]) -> Cow<'_, [u8]> {
        let encoding = match self {
            Self::Utf8 | Self::RawUtf8 | Self::Nop => return Cow::Borrowed(text),
            Self::Latin1 => {
                return Cow::Owned(text.iter().map(|byte| char::from(*byte)).collect::<String>().into_bytes());
            }
            Self::Utf16Le => encoding_rs::UTF_16LE,
            Self::Utf16Be => encoding_rs::UTF_16BE,
            Self::Other(encoding) => encoding,
        };
        match encoding.decode_without_bom_handling(text).0 {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }
}

/// Finds a unit of two bytes at an even offset.
fn find_unit(text: &[u8], unit: [u8; 2]) -> Option<usize> {
    memchr::memmem::find_iter(text, &unit).find(|at| at % 2 == 0).or_else(|| {
        // Matches do not overlap: an odd one hides an even one behind it.
        text.chunks_exact(2).position(|pair| pair == unit).map(|index| index * 2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whatever_their_case() {
        for (name, encoding) in [
            ("", TextEncoding::Utf8),
            ("UTF-8", TextEncoding::Utf8),
            ("ascii", TextEncoding::Utf8),
            ("utf-8-raw", TextEncoding::RawUtf8),
            ("NOP", TextEncoding::Nop),
            ("ISO-8859-1", TextEncoding::Latin1),
            ("utf-16le", TextEncoding::Utf16Le),
            ("utf-16be", TextEncoding::Utf16Be),
            ("big5", TextEncoding::Other(encoding_rs::BIG5)),
            ("Shift_JIS", TextEncoding::Other(encoding_rs::SHIFT_JIS)),
            ("windows-1252", TextEncoding::Other(encoding_rs::WINDOWS_1252)),
        ] {
            assert_eq!(TextEncoding::from_name(name), Some(encoding), "{name}");
        }
        for name in ["klingon", "utf-32", "hz-gb-2312", "x-user-defined"] {
            assert_eq!(TextEncoding::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn line_feed_of_utf16_is_found_at_its_alignment_only() {
        assert_eq!(TextEncoding::Utf16Le.find_line_feed(&[1, b'\n', 0, 1, b'\n', 0]), Some(4));
        assert_eq!(TextEncoding::Utf16Be.find_line_feed(&[1, 0, b'\n', 1, 0, b'\n']), Some(4));
        assert_eq!(TextEncoding::Utf16Be.find_line_feed(&[1, 0, 0, b'\n']), Some(2));
        assert_eq!(TextEncoding::Utf16Be.find_line_feed(&[0, 0, b'\n', 0]), None);
    }

    #[test]
    fn encodings_are_decoded() {
        for (name, bytes, text) in [
            ("windows-1252", &b"\x80 5 \x93q\x94"[..], "\u{20ac} 5 \u{201c}q\u{201d}"),
            ("iso-8859-1", b"\xe9\x80", "\u{e9}\u{80}"),
            ("big5", b"\xa4@\xa4G", "\u{4e00}\u{4e8c}"),
            ("shift_jis", b"\x93\xfa\x96{", "\u{65e5}\u{672c}"),
            ("utf-16le", b"\xff\xfeo\0", "\u{feff}o"),
            ("utf-16be", b"\x4e\x16", "\u{4e16}"),
        ] {
            let encoding = TextEncoding::from_name(name).unwrap();
            assert_eq!(encoding.decode(bytes), text.as_bytes(), "{name}");
        }
    }
}
