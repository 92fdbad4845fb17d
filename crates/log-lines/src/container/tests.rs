use super::*;
use crate::limits::BlankTrimming;
use crate::record::LineRecord;

/// Collects records as text.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) all: Vec<(u64, Option<OutputStream>, String, u64)>,
    room: Option<usize>,
}

impl RecordSink for Records {
    fn has_room(&self) -> bool {
        self.room.is_none_or(|room| self.all.len() < room)
    }

    fn put(&mut self, record: &LineRecord<'_>) {
        let body = String::from_utf8_lossy(record.body).into_owned();
        self.all.push((record.time, record.stream, body, record.start.offset));
    }
}

fn settings() -> ContainerSettings {
    ContainerSettings::default()
}

fn decode_with(settings: ContainerSettings, log: &[u8], flushes: bool) -> (Vec<String>, ContainerLogDecoder) {
    let mut decoder = ContainerLogDecoder::new(settings);
    let mut records = Records::default();
    let start = LinePosition { generation: 3, offset: 0 };
    let consumed = decoder.push(log, start, 7, &mut records);
    if flushes {
        decoder.flush(&log[consumed..], start.advanced_by(consumed), 7, &mut records);
    }
    let records = records.all.into_iter().map(|(time, stream, body, _)| {
        format!("{}.{} {} {body}", time / 1_000_000_000, time % 1_000_000_000, stream.map_or("-", OutputStream::as_str))
    });
    (records.collect(), decoder)
}

fn decode(log: &str) -> Vec<String> {
    decode_with(settings(), log.as_bytes(), true).0
}

const T0: &str = "1970-01-01T00:00:00.5Z";
const T1: &str = "1970-01-01T00:00:01Z";

#[test]
fn parts_are_joined_for_each_stream_apart() {
    let log = format!("{T0} stdout P o1-\n{T0} stderr P e1-\n{T1} stdout F o2\n{T1} stderr F e2\n{T1} stderr F x\n");
    assert_eq!(decode(&log), ["0.500000000 stdout o1-o2", "0.500000000 stderr e1-e2", "1.0 stderr x"]);
    let log = format!("{T0} stdout P out-\n{T0} stderr F err\n{T1} stdout F done\n");
    assert_eq!(decode(&log), ["0.500000000 stderr err", "0.500000000 stdout out-done"]);
}

#[test]
fn empty_contents_are_records_and_an_empty_end_ends_a_record() {
    let log = format!("{T0} stdout F \n{T1} stdout F\n{T1} stdout P a\n{T1} stdout F \n");
    assert_eq!(decode(&log), ["0.500000000 stdout ", "1.0 stdout ", "1.0 stdout a"]);
}

#[test]
fn part_without_end_is_handed_on_when_the_log_ends() {
    let log = format!("{T0} stdout P never\n{T1} stdout P ends");
    assert_eq!(decode_with(settings(), log.as_bytes(), false).0, [""; 0]);
    let (records, mut decoder) = decode_with(settings(), log.as_bytes(), true);
    assert_eq!(records, ["0.500000000 stdout neverends"]);
    assert_eq!(decoder.take_counts().unfinished_records, 1);
    assert_eq!(decoder.commit_position(), LinePosition { generation: 3, offset: log.len() as u64 });
}

#[test]
fn part_is_handed_on_when_nothing_has_followed_for_five_seconds() {
    let mut decoder = ContainerLogDecoder::new(settings());
    let mut records = Records::default();
    let log = format!("{T0} stdout P never\n");
    decoder.push(log.as_bytes(), LinePosition::default(), 7, &mut records);
    assert_eq!(decoder.deadline(), Some(5_000_000_007));
    decoder.flush_due(5_000_000_006, &mut records);
    assert_eq!((records.all.len(), decoder.commit_position().offset), (0, 0));
    decoder.flush_due(5_000_000_007, &mut records);
    assert_eq!((records.all.len(), decoder.commit_position().offset), (1, log.len() as u64));
    assert_eq!((decoder.deadline(), decoder.take_counts().unfinished_records), (None, 1));
}

#[test]
fn commit_position_stays_in_front_of_open_parts() {
    let first = format!("{T0} stdout F a\n");
    let log = format!("{first}{T0} stderr P open-\n{T1} stdout F b\n");
    let mut decoder = ContainerLogDecoder::new(settings());
    let mut records = Records::default();
    let start = LinePosition { generation: 1, offset: 100 };
    assert_eq!(decoder.push(log.as_bytes(), start, 7, &mut records), log.len());
    assert_eq!(decoder.commit_position(), start.advanced_by(first.len()));
    assert!(decoder.has_open_record());
    let next = format!("{T1} stderr F end\n");
    let start = LinePosition { generation: 2, offset: 0 };
    decoder.push(next.as_bytes(), start, 7, &mut records);
    assert_eq!(decoder.commit_position(), start.advanced_by(next.len()));
    assert_eq!(records.all.last().map(|record| record.2.as_str()), Some("open-end"));
}

#[test]
fn character_that_was_cut_between_parts_is_whole_again() {
    let mut log = format!("{T0} stdout P a\u{4e16}").into_bytes();
    log.pop();
    log.extend_from_slice(format!("\n{T0} stdout F ").as_bytes());
    log.extend_from_slice(&"\u{4e16}".as_bytes()[2..]);
    log.push(b'\n');
    assert_eq!(decode_with(settings(), &log, true).0, ["0.500000000 stdout a\u{4e16}"]);
}

#[test]
fn lines_of_no_format_are_handed_on_and_counted() {
    let log = format!("plain text\r\n\n{T0} stdin F x\n{{\"msg\":1}}\n2023-99-99T22:13:20Z stdout F hello\n");
    let (records, mut decoder) = decode_with(settings(), log.as_bytes(), true);
    let expected =
        ["plain text", "1970-01-01T00:00:00.5Z stdin F x", "{\"msg\":1}", "2023-99-99T22:13:20Z stdout F hello"];
    assert_eq!(records, expected.map(|line| format!("0.0 - {line}")));
    let counts = decoder.take_counts();
    assert_eq!((counts.unparsed_lines, counts.empty_lines, counts.records, counts.lines), (5, 1, 4, 5));
    assert_eq!(counts.bytes, log.len() as u64);
}

#[test]
fn docker_lines_are_joined_unless_they_are_wanted_as_written() {
    let line = |text: &str, stream: &str| format!("{{\"log\":\"{text}\",\"stream\":\"{stream}\",\"time\":\"{T0}\"}}\n");
    let log = [line("hel", "stdout"), line("err\\n", "stderr"), line("lo \\\"x\\\"\\n", "stdout")].concat();
    assert_eq!(decode(&log), ["0.500000000 stderr err", "0.500000000 stdout hello \"x\""]);
    let as_written = ContainerSettings { docker: DockerBodies::AsWritten, ..settings() };
    let expected = ["stdout hel", "stderr err\n", "stdout lo \"x\"\n"].map(|record| format!("0.500000000 {record}"));
    assert_eq!(decode_with(as_written, log.as_bytes(), true).0, expected);
}

#[test]
fn formats_may_be_mixed_and_a_format_excludes_others() {
    let docker = format!("{{\"log\":\"two\\n\",\"stream\":\"stdout\",\"time\":\"{T1}\"}}");
    let cri = format!("{T0} stdout F one");
    let log = format!("{cri}\n{docker}\n");
    assert_eq!(decode(&log), ["0.500000000 stdout one", "1.0 stdout two"]);
    let only = |format| decode_with(ContainerSettings { format, ..settings() }, log.as_bytes(), true).0;
    assert_eq!(only(ContainerFormat::Cri), ["0.500000000 stdout one".to_owned(), format!("0.0 - {docker}")]);
    assert_eq!(only(ContainerFormat::Docker), [format!("0.0 - {cri}"), "1.0 stdout two".to_owned()]);
}

#[test]
fn parts_beyond_the_largest_record_are_split_or_dropped() {
    let log = format!("{T0} stdout P aaaaaaaa\n{T0} stdout P bbbbbbbb\n{T0} stdout F cccccccc\n{T1} stdout F next\n");
    let split = ContainerSettings { max_record_bytes: 10, ..settings() };
    let (records, mut decoder) = decode_with(split, log.as_bytes(), true);
    assert_eq!(records, ["0.500000000 stdout aaaaaaaabbbbbbbb", "0.500000000 stdout cccccccc", "1.0 stdout next"]);
    assert_eq!(decoder.take_counts().split_records, 1);
    let cut = ContainerSettings { oversize: OversizeBehavior::Truncate, ..split };
    let (records, mut decoder) = decode_with(cut, log.as_bytes(), true);
    assert_eq!(records, ["0.500000000 stdout aaaaaaaabb", "1.0 stdout next"]);
    let counts = decoder.take_counts();
    assert_eq!((counts.truncated_records, counts.truncated_bytes), (1, 14));
}

#[test]
fn line_without_end_is_consumed_in_pieces() {
    let settings = ContainerSettings { max_record_bytes: 1000, ..settings() };
    let content = "x".repeat(20_000);
    let log = format!("{T0} stderr F {content}\n{T1} stdout F next\n");
    let mut decoder = ContainerLogDecoder::new(settings);
    let mut records = Records::default();
    let (mut at, mut end) = (0, 0);
    while end < log.len() {
        end = (end + 700).min(log.len());
        let start = LinePosition::default().advanced_by(at);
        at += decoder.push(&log.as_bytes()[at..end], start, 7, &mut records);
        assert!(end - at < decoder.max_line_bytes());
    }
    let bodies: String = records.all.iter().map(|record| record.2.as_str()).collect();
    assert_eq!(bodies, format!("{content}next"));
    assert!(records.all.iter().all(|record| record.2.len() <= 2 * decoder.max_line_bytes()));
    assert!(records.all[..records.all.len() - 1].iter().all(|record| record.1 == Some(OutputStream::Stderr)));
    assert!(records.all.iter().all(|record| record.0 > 0));
}

#[test]
fn blanks_are_removed_behind_the_join_only() {
    let trimming = BlankTrimming { removes_leading: false, removes_trailing: true };
    let trimmed = ContainerSettings { trimming, ..settings() };
    let log = format!("{T0} stdout P a \n{T0} stdout F  b  \n{T0} stdout F   two  \n");
    assert_eq!(decode(&log), ["0.500000000 stdout a  b  ", "0.500000000 stdout   two  "]);
    assert_eq!(decode_with(trimmed, log.as_bytes(), true).0, ["0.500000000 stdout a  b", "0.500000000 stdout   two"]);
}

#[test]
fn docker_line_as_written_keeps_its_line_feed_when_blanks_are_removed() {
    let trimming = BlankTrimming { removes_leading: false, removes_trailing: true };
    let as_written = ContainerSettings { trimming, docker: DockerBodies::AsWritten, ..settings() };
    let log = b"{\"log\":\"a\\n\",\"stream\":\"stdout\",\"time\":\"1970-01-01T00:00:00.5Z\"}\n";
    assert_eq!(decode_with(as_written, log, true).0, ["0.500000000 stdout a\n"]);
}

#[test]
fn full_sink_stops_in_front_of_the_next_line() {
    let line = format!("{T0} stdout F a\n");
    let log = line.repeat(3);
    let mut decoder = ContainerLogDecoder::new(settings());
    let mut records = Records { room: Some(2), ..Records::default() };
    assert_eq!(decoder.push(log.as_bytes(), LinePosition::default(), 7, &mut records), 2 * line.len());
    assert_eq!(decoder.commit_position().offset, 2 * line.len() as u64);
    assert_eq!(decoder.record_number(), 2);
}
