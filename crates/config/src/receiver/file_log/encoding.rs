//! `encoding`: how the bytes of a file stand for text.

use crate::decode::{Cursor, DecodeReport, scalar};

/// `encoding` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TextEncoding {
    /// `utf-8`: a byte that is not UTF-8 becomes U+FFFD. `ascii` is the same.
    #[default]
    Utf8,
    /// `utf-8-raw`: bytes pass as they are.
    Utf8Raw,
    /// `nop`: the content is bytes, which are neither split nor trimmed.
    Nop,
    /// `utf-16le`, and `utf-16`.
    Utf16Le,
    /// `utf-16be`
    Utf16Be,
    /// Another encoding: `iso-8859-1`, or one of the Encoding Standard by the name that the standard gives it, in lower
    /// case.
    Named(&'static str),
}

/// Names that the Collector treats apart from the registry of names.
const OWN_NAMES: [(&str, TextEncoding); 14] = [
    ("", TextEncoding::Utf8),
    ("utf-8", TextEncoding::Utf8),
    ("utf8", TextEncoding::Utf8),
    ("ascii", TextEncoding::Utf8),
    ("us-ascii", TextEncoding::Utf8),
    ("utf-8-raw", TextEncoding::Utf8Raw),
    ("utf8-raw", TextEncoding::Utf8Raw),
    ("nop", TextEncoding::Nop),
    ("utf-16", TextEncoding::Utf16Le),
    ("utf16", TextEncoding::Utf16Le),
    ("utf-16le", TextEncoding::Utf16Le),
    ("utf16le", TextEncoding::Utf16Le),
    ("utf-16be", TextEncoding::Utf16Be),
    ("utf16be", TextEncoding::Utf16Be),
];

/// The encodings of the Encoding Standard with the names that IANA has for them.
const NAMED: &[(&str, &[&str])] = &[
    ("big5", &["big5", "csbig5", "big5-hkscs"]),
    ("euc-jp", &["euc-jp", "cseucpkdfmtjapanese", "extended_unix_code_packed_format_for_japanese"]),
    ("euc-kr", &["euc-kr", "cseuckr", "ks_c_5601-1987", "korean"]),
    ("gb18030", &["gb18030", "csgb18030"]),
    ("gbk", &["gbk", "cp936", "ms936", "windows-936", "csgbk", "gb2312", "csgb2312"]),
    ("ibm866", &["ibm866", "cp866", "866", "csibm866"]),
    ("iso-2022-jp", &["iso-2022-jp", "csiso2022jp"]),
    ("iso-8859-2", &["iso-8859-2", "latin2", "l2", "csisolatin2"]),
    ("iso-8859-3", &["iso-8859-3", "latin3", "l3", "csisolatin3"]),
    ("iso-8859-4", &["iso-8859-4", "latin4", "l4", "csisolatin4"]),
    ("iso-8859-5", &["iso-8859-5", "cyrillic", "csisolatincyrillic"]),
    ("iso-8859-6", &["iso-8859-6", "arabic", "csisolatinarabic"]),
    ("iso-8859-7", &["iso-8859-7", "greek", "greek8", "csisolatingreek"]),
    ("iso-8859-8", &["iso-8859-8", "hebrew", "csisolatinhebrew"]),
    ("iso-8859-10", &["iso-8859-10", "latin6", "l6", "csisolatin6"]),
    ("iso-8859-13", &["iso-8859-13", "csiso885913"]),
    ("iso-8859-14", &["iso-8859-14", "latin8", "l8", "csiso885914"]),
    ("iso-8859-15", &["iso-8859-15", "latin-9", "csiso885915"]),
    ("iso-8859-16", &["iso-8859-16", "latin10", "l10", "csiso885916"]),
    ("koi8-r", &["koi8-r", "cskoi8r"]),
    ("koi8-u", &["koi8-u", "cskoi8u"]),
    ("macintosh", &["macintosh", "mac", "csmacintosh"]),
    ("shift_jis", &["shift_jis", "ms_kanji", "csshiftjis", "windows-31j", "cswindows31j"]),
    ("windows-874", &["windows-874", "cswindows874"]),
    ("windows-1250", &["windows-1250", "cswindows1250"]),
    ("windows-1251", &["windows-1251", "cswindows1251"]),
    ("iso-8859-1", &["iso-8859-1", "latin1", "l1", "csisolatin1", "cp819"]),
    ("windows-1252", &["windows-1252", "cswindows1252"]),
    ("windows-1253", &["windows-1253", "cswindows1253"]),
    ("windows-1254", &["windows-1254", "cswindows1254", "iso-8859-9", "latin5", "l5", "csisolatin5"]),
    ("windows-1255", &["windows-1255", "cswindows1255"]),
    ("windows-1256", &["windows-1256", "cswindows1256"]),
    ("windows-1257", &["windows-1257", "cswindows1257"]),
    ("windows-1258", &["windows-1258", "cswindows1258"]),
];

/// Reads `encoding`; letters may be in upper or lower case.
pub(super) fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<TextEncoding> {
    let name = scalar::text(at, report)?;
    let encoding = find(&name.to_ascii_lowercase());
    if encoding.is_none() {
        let message = format!("unsupported `encoding` {}", at.quote(&name));
        report.error(
            at,
            message,
            Some("use a name of IANA's, such as utf-8, utf-16le, shift_jis or windows-1252".into()),
        );
    }
    encoding
}

fn find(name: &str) -> Option<TextEncoding> {
    if let Some((_, own)) = OWN_NAMES.iter().find(|(own, _)| *own == name) {
        return Some(*own);
    }
    NAMED.iter().find(|(_, names)| names.contains(&name)).map(|(standard, _)| TextEncoding::Named(standard))
}

impl TextEncoding {
    /// Its name in documents.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf8Raw => "utf-8-raw",
            Self::Nop => "nop",
            Self::Utf16Le => "utf-16le",
            Self::Utf16Be => "utf-16be",
            Self::Named(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found_by_their_aliases() {
        assert_eq!(find("us-ascii"), Some(TextEncoding::Utf8));
        assert_eq!(find("utf16"), Some(TextEncoding::Utf16Le));
        assert_eq!(find("latin1"), Some(TextEncoding::Named("iso-8859-1")));
        assert_eq!(find("klingon"), None);
    }
}
