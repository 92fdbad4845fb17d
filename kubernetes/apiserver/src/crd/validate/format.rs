//! String formats that kube-apiserver checks; others are ignored, as there.

use std::{net::Ipv6Addr, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

/// Whether a string has a format.
type FormatTest = fn(&str) -> bool;

/// A format by its name without dashes, with its test.
const KNOWN_FORMATS: [(&str, FormatTest); 26] = [
    ("bsonobjectid", |text| text.len() == 24 && is_hex(text)),
    ("uri", is_uri),
    ("email", is_email),
    ("hostname", is_hostname),
    ("ipv4", |text| text.contains('.') && is_ip(text)),
    ("ipv6", |text| text.contains(':') && is_ip(text)),
    ("cidr", is_cidr),
    ("mac", is_mac),
    ("uuid", |text| matches(text, 0)),
    ("uuid3", |text| matches(text, 1)),
    ("uuid4", |text| matches(text, 2)),
    ("uuid5", |text| matches(text, 3)),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("creditcard", is_credit_card),
    ("ssn", |text| matches(text, 4)),
    ("hexcolor", |text| matches(text, 5)),
    ("rgbcolor", |text| matches(text, 6)),
    ("byte", |text| !text.is_empty() && text.len() % 4 == 0 && matches(text, 7)),
    ("password", |_| true),
    ("date", |text| jiff::civil::Date::strptime("%Y-%m-%d", text).is_ok() && text.len() == 10),
    ("duration", is_duration),
    ("datetime", is_date_time),
    ("k8sshortname", |text| text.len() <= 63 && !text.contains('.') && matches(text, 9)),
    ("k8slongname", |text| text.len() <= 253 && matches(text, 9)),
];

const FORMAT_PATTERNS: [&str; 13] = [
    "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$",
    "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$",
    "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    r"^rgb\( *(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]) *, *(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]) *, *(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]) *\)$",
    "^[A-Za-z0-9+/]+={0,2}$",
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.))+([a-zA-Z\p{L}]){2,63})$",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    r"^([0-9]+ *(ns|nanosecond|nanoseconds|us|µs|microsecond|microseconds|ms|milli|milliseconds|s|second|seconds|m|minute|minutes|h|hour|hours|d|day|days|w|week|weeks))$",
    r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[-+][0-9]{2}:?[0-9]{2})$",
];

static COMPILED_PATTERNS: LazyLock<[Option<Regex>; 13]> =
    LazyLock::new(|| FORMAT_PATTERNS.map(|pattern| Regex::new(pattern).ok()));

fn matches(text: &str, pattern: usize) -> bool {
    COMPILED_PATTERNS.get(pattern).and_then(Option::as_ref).is_some_and(|pattern| pattern.is_match(text))
}

/// A known format.
#[derive(Clone, Debug)]
pub(super) struct StringFormat {
    name: String,
    /// None for numbers, whose format is only a name.
    test: Option<FormatTest>,
}

impl StringFormat {
    /// Looks up a format for values of these types.
    pub(super) fn lookup_format(name: &str, types: &[&str]) -> Option<Self> {
        let test = match types {
            [] | ["string"] => Some(find_test(name)?),
            ["integer"] if matches!(name, "int32" | "int64") => None,
            ["number"] if matches!(name, "float" | "double") => None,
            _ => return None,
        };
        Some(Self { name: name.to_owned(), test })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.test.is_none_or(|test| test(text))
    }
}

/// Whether a format is known for values of this type.
pub(crate) fn is_known(name: &str, kind: &str) -> bool {
    let types: &[&str] = if kind.is_empty() { &[] } else { &[kind] };
    StringFormat::lookup_format(name, types).is_some()
}

fn find_test(name: &str) -> Option<FormatTest> {
    let name = name.replace('-', "");
    KNOWN_FORMATS.iter().find(|(known, _)| *known == name).map(|(_, test)| *test)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The target of a request line: an absolute URI or an absolute path.
fn is_uri(text: &str) -> bool {
    let clean = !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    let absolute = scheme.is_some_and(|scheme| {
        scheme.starts_with(|char: char| char.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    clean && (text.starts_with('/') || absolute) && percents_are_complete(text)
}

fn percents_are_complete(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| rest.get(..2).is_some_and(is_hex))
}

fn is_email(text: &str) -> bool {
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => rest.strip_suffix('>').unwrap_or_default(),
        None => text,
    };
    let atom =
        |part: &str| !part.is_empty() && part.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char));
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
        (quoted || atom(local)) && (atom(domain) || domain.starts_with('[') && domain.ends_with(']'))
    })
}

fn is_atom_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || !char.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(char)
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && matches(text, 8)
}

/// Go's lenient parser accepts leading zeros in IPv4.
fn is_ip(text: &str) -> bool {
    let ipv4 = || {
        let parts: Vec<&str> = text.split('.').collect();
        let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.len() == 4 && parts.iter().all(|part| digits(part) && part.parse::<u16>().is_ok_and(|part| part < 256))
    };
    text.parse::<Ipv6Addr>().is_ok() || ipv4()
}

fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(ip, bits)| {
        let max = if ip.contains(':') { 128 } else { 32 };
        let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        is_ip(ip) && digits && bits.parse::<u16>().is_ok_and(|bits| bits <= max)
    })
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|part| part.len() == width && is_hex(part))
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

fn without_separators(text: &str) -> Vec<char> {
    text.chars().filter(|char| *char != '-' && !char.is_whitespace()).collect()
}

fn is_isbn10(text: &str) -> bool {
    let chars = without_separators(text);
    let digit = |(index, char): (usize, &char)| match char {
        'X' if index == 9 => Some(10),
        char => char.to_digit(10),
    };
    let digits: Option<Vec<u32>> = chars.iter().enumerate().map(digit).collect();
    digits.is_some_and(|digits| {
        digits.len() == 10 && digits.iter().zip(1..).map(|(digit, at)| digit * at).sum::<u32>() % 11 == 0
    })
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = without_separators(text).iter().map(|char| char.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        digits.len() == 13
            && digits.iter().zip([1, 3].iter().cycle()).map(|(digit, by)| digit * by).sum::<u32>() % 10 == 0
    })
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|char| char.to_digit(10)).collect();
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 =
        digits.iter().rev().enumerate().map(|(at, digit)| if at % 2 == 1 { doubled(*digit) } else { *digit }).sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}

/// Durations of Go, and of Scala (`3 days`).
fn is_duration(text: &str) -> bool {
    text == "0" || matches(text, 11) || matches(&text.to_lowercase(), 10)
}

fn is_date_time(text: &str) -> bool {
    matches(text, 12) && text.replace(' ', "T").to_uppercase().parse::<jiff::Timestamp>().is_ok()
}

/// Whether a value is a string that becomes a time in CEL.
pub(super) fn is_time(format: &str, value: &Value) -> bool {
    matches!(format, "date-time" | "datetime" | "date") && value.is_string()
}
