use super::*;

/// Collects the bodies of records as text.
#[derive(Default)]
struct Bodies(Vec<(String, BodyKind)>);

impl RecordSink for Bodies {
    fn has_room(&self) -> bool {
        true
    }

    fn put(&mut self, record: &LineRecord<'_>) {
        self.0.push((String::from_utf8_lossy(record.body).into_owned(), record.body_kind));
    }
}

/// Reads a file in chunks of `step` bytes and flushes its end.
fn read_in_steps(settings: &PlainSettings, file: &[u8], step: usize) -> (Vec<String>, DecodeCounts) {
    let mut decoder = PlainLogDecoder::new(settings.clone());
    let mut bodies = Bodies::default();
    let start = |at| LinePosition { generation: 1, offset: at as u64 };
    let (mut at, mut end) = (0, 0);
    while end < file.len() {
        end = (end + step).min(file.len());
        at += decoder.push(&file[at..end], start(at), 7, &mut bodies);
        assert_eq!(decoder.commit_position(), if at == 0 { LinePosition::default() } else { start(at) });
    }
    at += decoder.flush(&file[at..], start(at), 7, &mut bodies);
    assert_eq!(at, file.len());
    (bodies.0.into_iter().map(|(body, _)| body).collect(), decoder.take_counts())
}

/// Reads a file in every way of cutting it, which all have to agree.
fn read(settings: &PlainSettings, file: &[u8]) -> (Vec<String>, DecodeCounts) {
    let whole = read_in_steps(settings, file, file.len().max(1));
    for step in [1, 2, 3, 7] {
        assert_eq!(read_in_steps(settings, file, step), whole, "chunks of {step}");
    }
    whole
}

fn with_framing(framing: LineFraming) -> PlainSettings {
    PlainSettings { framing, ..PlainSettings::default() }
}

fn starts(pattern: &str) -> LineFraming {
    LineFraming::Start(LinePattern::new(pattern, false).unwrap())
}

fn ends(pattern: &str) -> LineFraming {
    LineFraming::End(LinePattern::new(pattern, false).unwrap())
}

#[test]
fn lines_end_at_line_feeds_and_empty_ones_are_no_records() {
    let settings = PlainSettings::default();
    for (file, bodies) in [
        ("one\r\ntwo\r\n", &["one", "two"][..]),
        ("one\n\n\ntwo\n\n", &["one", "two"]),
        ("\n\n\n", &[]),
        ("  one  \n\ttwo\t\n", &["one", "two"]),
        ("one\ntwo", &["one", "two"]),
        ("a\u{2028}b\u{85}c\x0bd\x0ce\n", &["a\u{2028}b\u{85}c\x0bd\x0ce"]),
        ("\u{feff}one\n", &["\u{feff}one"]),
    ] {
        assert_eq!(read(&settings, file.as_bytes()).0, bodies, "{file:?}");
    }
    let counts = read(&settings, b"one\n\n two \n").1;
    assert_eq!((counts.bytes, counts.lines, counts.records, counts.empty_lines), (11, 3, 2, 1));
}

#[test]
fn blanks_stay_where_they_are_wanted() {
    let trimming = BlankTrimming { removes_leading: true, removes_trailing: false };
    let settings = PlainSettings { trimming, ..PlainSettings::default() };
    assert_eq!(read(&settings, b"  one  \n\ttwo\t\n").0, ["one  ", "two\t"]);
}

#[test]
fn patterns_separate_records() {
    for (framing, file, bodies) in [
        (starts(r"^\d{4}"), "2023 a\n  b\n2024 c\n  d\n", &["2023 a\n  b", "2024 c\n  d"][..]),
        (starts(r"^\d{4}"), "junk\nmore\n2023 a\n", &["junk\nmore", "2023 a"]),
        (starts(r"^\d{4}"), "a\nb\nc\n", &["a\nb\nc"]),
        (starts(r"^\d{4}"), "2023 2024\n2025 x\n", &["2023 2024", "2025 x"]),
        (ends("END\n"), "a\nb END\nc\nd END\n", &["a\nb END", "c\nd END"]),
        (ends("END"), "a END\nb\n", &["a END", "b"]),
        (ends("\n\n"), "a\n\nb\n", &["a", "b"]),
        (LineFraming::End(LinePattern::new(";", true).unwrap()), "a;b;c;", &["a", "b", "c"]),
        (LineFraming::Start(LinePattern::new("#", true).unwrap()), "#a#b#c", &["a", "b", "#c"]),
        (ends("^"), "a\nb\n", &["a", "b"]),
        (starts(""), "ab", &["a", "b"]),
    ] {
        let settings = with_framing(framing);
        assert_eq!(read(&settings, file.as_bytes()).0, bodies, "{file:?} {:?}", settings.framing);
    }
    assert!(LinePattern::new("(", false).is_err());
}

#[test]
fn record_is_there_only_when_its_end_is_known() {
    let mut decoder = PlainLogDecoder::new(with_framing(starts("^START")));
    let mut bodies = Bodies::default();
    let file = b"START a\n b\nSTART c\n";
    assert_eq!(decoder.push(&file[..11], LinePosition::default(), 7, &mut bodies), 0);
    assert_eq!(decoder.push(file, LinePosition::default(), 7, &mut bodies), 11);
    assert_eq!(bodies.0.len(), 1);
}

#[test]
fn long_records_are_split_or_cut() {
    let split = |max_record_bytes| PlainSettings { max_record_bytes, ..PlainSettings::default() };
    for (size, file, bodies) in [
        (10, "0123456789\nx\n", &["0123456789", "x"][..]),
        (10, "0123456789\r\nx\n", &["0123456789", "x"]),
        (10, "0123456789a\nx\n", &["0123456789", "a", "x"]),
        (10, "0123456789abcdefghijklmno\nshort\n", &["0123456789", "abcdefghij", "klmno", "short"]),
        (9, "12345678é0世界\nx\n", &["12345678\u{fffd}", "\u{fffd}0世界", "x"]),
    ] {
        assert_eq!(read(&split(size), file.as_bytes()).0, bodies, "{file:?}");
    }
    let cut = |size| PlainSettings { oversize: OversizeBehavior::Truncate, ..split(size) };
    let (bodies, counts) = read(&cut(10), b"0123456789abcdefghijklmno\nshort\n");
    assert_eq!(bodies, ["0123456789", "short"]);
    assert_eq!((counts.truncated_records, counts.truncated_bytes), (1, 16));
    assert_eq!(read(&cut(9), "12345678é0世界\nx\n".as_bytes()).0, ["12345678\u{fffd}", "x"]);

    let multiline = PlainSettings { framing: starts("^S "), ..split(8) };
    assert_eq!(read(&multiline, b"S 1\nabcdefgh\nS 2\n").0, ["S 1\nabcd", "efgh", "S 2"]);
    let multiline = PlainSettings { framing: starts("^S "), ..cut(8) };
    assert_eq!(read(&multiline, b"S 1\nabcdefgh\nS 2\n").0, ["S 1\nabcd", "S 2"]);
    let multiline = PlainSettings { framing: ends(";"), ..cut(8) };
    assert_eq!(read(&multiline, b"S 1\nabcdefgh;S 2;").0, ["S 1\nabcd", "S 2;"]);
}

#[test]
fn long_records_beyond_every_chunk_are_consumed() {
    for framing in [LineFraming::LineFeed, starts("^S "), ends(";")] {
        for oversize in [OversizeBehavior::Split, OversizeBehavior::Truncate] {
            let settings =
                PlainSettings { max_record_bytes: 100, oversize, framing: framing.clone(), ..PlainSettings::default() };
            let file = [&b"x".repeat(20_000)[..], b"\nS y;\n"].concat();
            let whole = read_in_steps(&settings, &file, file.len());
            assert_eq!(read_in_steps(&settings, &file, 1000), whole);
            let bytes: usize = whole.0.iter().map(String::len).sum();
            assert!(bytes as u64 + whole.1.truncated_bytes >= 20_003);
        }
    }
}

#[test]
fn encodings_are_framed_and_decoded() {
    let units = |text: &str, order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    for (name, file, bodies) in [
        ("utf-16le", units("one é\n two 世\r\nਊਊ\n", u16::to_le_bytes), &["one é", "two 世", "ਊਊ"][..]),
        ("utf-16be", units("one é\n two 世\r\nਊਊ\n", u16::to_be_bytes), &["one é", "two 世", "ਊਊ"]),
        ("utf-16le", units("\u{feff}one\ntwo", u16::to_le_bytes), &["\u{feff}one", "two"]),
        ("windows-1252", b"\x80 5 \x93q\x94\n".to_vec(), &["\u{20ac} 5 \u{201c}q\u{201d}"]),
        ("utf-8", b"bad \xff\xfe x\ncut \xc3\n".to_vec(), &["bad \u{fffd}\u{fffd} x", "cut \u{fffd}"]),
    ] {
        let encoding = TextEncoding::from_name(name).unwrap();
        let settings = PlainSettings { encoding, ..PlainSettings::default() };
        assert_eq!(read(&settings, &file).0, bodies, "{name}");
    }
}

#[test]
fn without_encoding_each_read_is_a_record_of_bytes() {
    let settings = PlainSettings { encoding: TextEncoding::Nop, max_record_bytes: 5, ..PlainSettings::default() };
    let mut decoder = PlainLogDecoder::new(settings);
    let mut bodies = Bodies::default();
    assert_eq!(decoder.push(b" a\nb\nc", LinePosition::default(), 7, &mut bodies), 6);
    assert_eq!(bodies.0, [(" a\nb\n".to_owned(), BodyKind::Bytes), ("c".to_owned(), BodyKind::Bytes)]);
}
