//! The format of entries: the rules of containerd.

use proptest::prelude::*;

use super::{super::line::LogEntry, *};

fn entries(pushes: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut splitter = LineSplitter::new(OutputStream::Stdout);
    let mut out = Vec::new();
    pushes.iter().for_each(|push| splitter.push(push, time(AT), &mut out));
    splitter.finish(time(AT), &mut out);
    let lines = out.strip_suffix(b"\n").map(|out| out.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect());
    lines.unwrap_or_default()
}

fn texts(pushes: &[&str]) -> Vec<String> {
    let pushes: Vec<&[u8]> = pushes.iter().map(|push| push.as_bytes()).collect();
    entries(&pushes).into_iter().map(|entry| String::from_utf8(entry).unwrap()).collect()
}

/// The lengths of the texts, with the tags.
fn shape(output: &[u8]) -> Vec<(char, usize)> {
    let entries = entries(&[output]);
    let parsed = entries.iter().map(|line| LogEntry::parse(line).unwrap());
    parsed.map(|entry| (if entry.full { 'F' } else { 'P' }, entry.text.len())).collect()
}

#[test]
fn line_becomes_an_entry_with_a_time_without_trailing_zeros() {
    let full = |text: &str| format!("{AT} stdout F {text}");
    assert_eq!(texts(&["one\ntwo\n"]), [full("one"), full("two")]);
    assert_eq!(texts(&["o", "n", "e\n\nthree\n"]), [full("one"), full(""), full("three")]);
    assert_eq!(texts(&["\n"]), [full("")]);
    let none: [String; 0] = [];
    assert_eq!(texts(&[]), none);
}

#[test]
fn output_without_a_line_end_is_a_partial_entry_without_an_end() {
    assert_eq!(texts(&["one\nha", "lf"]), [format!("{AT} stdout F one"), format!("{AT} stdout P half")]);
    assert_eq!(shape(&[b'q'; 20_000]), [('P', 16384), ('P', 3616)]);
    assert_eq!(shape(&[b'q'; 16_384]), [('P', 16384)]);
}

#[test]
fn long_line_is_cut_by_bytes_and_a_line_of_the_limit_is_whole() {
    let line = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
    assert_eq!(shape(&line(40_960)), [('P', 16384), ('P', 16384), ('F', 8192)]);
    assert_eq!(shape(&line(16_383)), [('F', 16383)]);
    assert_eq!(shape(&line(16_384)), [('F', 16384)]);
    assert_eq!(shape(&line(16_385)), [('P', 16384), ('F', 1)]);
    assert_eq!(shape(&line(32_768)), [('P', 16384), ('F', 16384)]);
    // In the middle of a character of three bytes.
    let entries = entries(&[format!("ab{}\n", "日".repeat(6000)).as_bytes()]);
    let first = LogEntry::parse(&entries[0]).unwrap();
    assert!(std::str::from_utf8(first.text).is_err() && first.text.len() == 16_384);
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let odd = b"crlf\r\ninvalid \xff\xfe\nnul \0 byte\n";
    let texts: Vec<Vec<u8>> =
        entries(&[odd]).iter().map(|entry| LogEntry::parse(entry).unwrap().text.to_vec()).collect();
    assert_eq!(texts, [b"crlf\r".to_vec(), b"invalid \xff\xfe".to_vec(), b"nul \0 byte".to_vec()]);
}

#[test]
fn first_of_several_tags_counts() {
    let parse = |entry: &'static str| LogEntry::parse(entry.as_bytes()).unwrap().full;
    assert!(parse("t stdout F:x text") && !parse("t stdout P:x text"));
    assert_eq!(LogEntry::parse(b"t stdout F"), None);
    let entry = LogEntry::parse(b"2026-01-02T05:04:05.06+02:00 stderr F a b").unwrap();
    assert_eq!((entry.timestamp(), entry.text), (Some(time(AT)), b"a b".as_slice()));
}

proptest! {
    #[test]
    fn entries_do_not_depend_on_the_pieces_in_which_output_arrives(
        lines in prop::collection::vec((0usize..40_000, any::<bool>()), 0..6),
        pieces in prop::collection::vec(1usize..20_000, 1..20),
    ) {
        let mut output = Vec::new();
        for (length, ends) in lines {
            output.resize(output.len() + length, b'x');
            output.extend(ends.then_some(b'\n'));
        }
        let mut rest = output.as_slice();
        let mut pushes = Vec::new();
        for piece in pieces.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (first, after) = rest.split_at((*piece).min(rest.len()));
            pushes.push(first);
            rest = after;
        }
        prop_assert_eq!(entries(&pushes), entries(&[&output]));
        let mut again = Vec::new();
        for entry in entries(&pushes) {
            let entry = LogEntry::parse(&entry).unwrap();
            again.extend_from_slice(entry.text);
            again.extend(entry.full.then_some(b'\n'));
        }
        prop_assert_eq!(again, output);
    }
}
