//! What holds for every log, however it is read.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "support/decoded.rs"]
mod decoded;
#[path = "support/logs.rs"]
mod logs;

use std::sync::Arc;

use kubewake_log_lines::{
    BlankTrimming, BodyParsing, ContainerFormat, ContainerLogDecoder, ContainerSettings, DecodeCounts, DockerBodies,
    LineFraming, LinePattern, LinePosition, OutputStream, OversizeBehavior, PlainLogDecoder, PlainSettings,
    RecordSettings, RecordSink, RequestBuilder, RequestLimits, TextEncoding,
};
use proptest::prelude::*;

use decoded::read_records;
use logs::{LogLine, OwnedRecord, Records, any_line, cri_line, cuts};

const OBSERVED: u64 = 7;

fn joined(lines: &[LogLine]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.text.clone()).collect()
}

fn settings() -> impl Strategy<Value = ContainerSettings> {
    let formats = prop::sample::select(vec![ContainerFormat::Auto, ContainerFormat::Cri, ContainerFormat::Docker]);
    (
        formats,
        any::<bool>(),
        prop::sample::select(vec![5usize, 50, 1 << 20]),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(format, joins, max_record_bytes, splits, trims, joins_stack_traces)| ContainerSettings {
            format,
            docker: if joins { DockerBodies::Joined } else { DockerBodies::AsWritten },
            max_record_bytes,
            oversize: if splits { OversizeBehavior::Split } else { OversizeBehavior::Truncate },
            trimming: BlankTrimming { removes_leading: false, removes_trailing: trims },
            joins_stack_traces,
        })
}

/// Reads a log in pieces that are cut at these distances, by a sink that takes as many records at a time. A reader
/// keeps what was not consumed, and reads on behind it.
fn read_container(
    settings: ContainerSettings,
    log: &[u8],
    cuts: &[usize],
    room: usize,
) -> (Vec<OwnedRecord>, DecodeCounts, LinePosition) {
    let mut decoder = ContainerLogDecoder::new(settings);
    let mut records = Records::with_room(room);
    let position = |at: usize| LinePosition { generation: 1, offset: at as u64 };
    let (mut at, mut end) = (0, 0);
    for cut in cuts.iter().cycle() {
        if end == log.len() && records.room > 0 {
            break;
        }
        end = (end + cut).min(log.len());
        records.room = room;
        at += decoder.push(&log[at..end], position(at), OBSERVED, &mut records);
        assert!(decoder.commit_position() <= position(at));
    }
    decoder.flush(&log[at..], position(at), OBSERVED, &mut records);
    (records.all, decoder.take_counts(), decoder.commit_position())
}

fn builder(parsing: BodyParsing) -> RequestBuilder {
    let settings = RecordSettings { parsing, adds_tags: true, ..RecordSettings::default() };
    RequestBuilder::new(Arc::default(), settings, RequestLimits { max_bytes: 1 << 24, max_records: usize::MAX })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn chunks_make_no_difference(
        settings in settings(), lines in prop::collection::vec(any_line(), 0..20), cuts in cuts(), room in 1usize..5,
    ) {
        let log = joined(&lines);
        let whole = read_container(settings, &log, &[log.len().max(1)], usize::MAX);
        prop_assert_eq!(&read_container(settings, &log, &cuts, usize::MAX), &whole);
        prop_assert_eq!(&read_container(settings, &log, &cuts, room), &whole);
        prop_assert_eq!(whole.2.offset, log.len() as u64);
        prop_assert_eq!(whole.1.bytes, log.len() as u64);
    }

    #[test]
    fn every_byte_of_a_stream_is_in_one_record(lines in prop::collection::vec(any_line(), 0..30), cuts in cuts()) {
        let settings = ContainerSettings { max_record_bytes: 100, ..ContainerSettings::default() };
        let (records, ..) = read_container(settings, &joined(&lines), &cuts, usize::MAX);
        for stream in [Some(OutputStream::Stdout), Some(OutputStream::Stderr), None] {
            let written = lines.iter().filter(|line| line.stream == stream).flat_map(|line| line.content.clone());
            let read = records.iter().filter(|record| record.stream == stream).flat_map(|record| record.body.clone());
            prop_assert_eq!(read.collect::<Vec<u8>>(), written.collect::<Vec<u8>>());
        }
    }

    #[test]
    fn restart_at_the_commit_position_loses_nothing(
        lines in prop::collection::vec(any_line(), 1..30), stop in 0usize..30, joins_stack_traces in any::<bool>(),
    ) {
        let settings = ContainerSettings { joins_stack_traces, ..ContainerSettings::default() };
        let log = joined(&lines);
        let (whole, ..) = read_container(settings, &log, &[log.len()], usize::MAX);
        let mut decoder = ContainerLogDecoder::new(settings);
        let before_stop = joined(&lines[..stop.min(lines.len())]);
        decoder.push(&before_stop, LinePosition { generation: 1, offset: 0 }, OBSERVED, &mut Records::with_room(usize::MAX));
        let commit = if before_stop.is_empty() { 0 } else { decoder.commit_position().offset as usize };
        let (again, ..) = read_container(settings, &log[commit..], &[log.len()], usize::MAX);
        // What is read again begins in front of the oldest open part. Of the other stream it may hold the end of a
        // record that had been complete, so that it holds at least what a reader needs that stopped there.
        for stream in [Some(OutputStream::Stdout), Some(OutputStream::Stderr), None] {
            let bytes = |records: &[OwnedRecord], from: u64| {
                let behind = records.iter().filter(|record| record.stream == stream && record.start.offset >= from);
                let bytes = behind.flat_map(|record| record.body.clone());
                // The line feeds within a trace depend on where it begins.
                bytes.filter(|byte| *byte != b'\n').collect::<Vec<u8>>()
            };
            let (again, needed) = (bytes(&again, 0), bytes(&whole, commit as u64));
            prop_assert!(again.ends_with(&needed), "{again:?} lacks some of {needed:?}");
        }
    }

    #[test]
    fn requests_hold_every_record_once(lines in prop::collection::vec(cri_line(), 1..30), parses in any::<bool>()) {
        let log = joined(&lines);
        let (expected, ..) = read_container(ContainerSettings::default(), &log, &[log.len()], usize::MAX);
        let mut builder = builder(if parses { BodyParsing::ALL } else { BodyParsing::OFF });
        let mut decoder = ContainerLogDecoder::new(ContainerSettings::default());
        let consumed = decoder.push(&log, LinePosition::default(), OBSERVED, &mut builder);
        decoder.flush(&log[consumed..], LinePosition::default(), OBSERVED, &mut builder);
        let request = builder.finish(decoder.commit_position()).unwrap();
        prop_assert!(kubewake_otlp::scan(kubewake_otlp::Signal::Logs, &request.body).is_ok());
        let records = read_records(&request.body);
        prop_assert_eq!(records.len(), expected.len());
        for (record, expected) in records.iter().zip(&expected) {
            prop_assert_eq!(record.time_unix_nano, expected.time);
            prop_assert_eq!(record.observed_time_unix_nano, OBSERVED);
            if !parses {
                let body = String::from_utf8_lossy(&expected.body).into_owned();
                prop_assert_eq!(decoded::show(record.body.as_ref()), format!("{body:?}"));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_consumed_and_make_a_request(
        log in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\n\n\r {}\":,[]\\0F.".to_vec())], 0..400),
        settings in settings(),
    ) {
        let mut builder = builder(BodyParsing::ALL);
        let mut decoder = ContainerLogDecoder::new(settings);
        let consumed = decoder.push(&log, LinePosition::default(), OBSERVED, &mut builder);
        decoder.flush(&log[consumed..], LinePosition::default().advanced_by(consumed), OBSERVED, &mut builder);
        let counts = decoder.take_counts();
        prop_assert_eq!(counts.bytes, log.len() as u64);
        let request = builder.finish(decoder.commit_position());
        prop_assert_eq!(request.as_ref().map_or(0, |request| request.records as u64), counts.records);
        if let Some(request) = request {
            prop_assert_eq!(read_records(&request.body).len() as u64, counts.records);
        }
    }

    #[test]
    fn plain_chunks_make_no_difference_and_no_byte_is_lost(
        text in "[ab;S0-9\\n\\r \\t\u{e9}\u{4e16}]{0,300}", cuts in cuts(), framing in 0usize..3,
        max_record_bytes in prop::sample::select(vec![3usize, 20, 1000]), splits in any::<bool>(),
    ) {
        let framing = match framing {
            0 => LineFraming::LineFeed,
            1 => LineFraming::Start(LinePattern::new("^S", false).unwrap()),
            _ => LineFraming::End(LinePattern::new(";", false).unwrap()),
        };
        let settings = PlainSettings {
            encoding: TextEncoding::Utf8,
            framing,
            max_record_bytes,
            oversize: if splits { OversizeBehavior::Split } else { OversizeBehavior::Truncate },
            trimming: BlankTrimming::default(),
        };
        let whole = read_plain(&settings, text.as_bytes(), &[text.len().max(1)]);
        prop_assert_eq!(&read_plain(&settings, text.as_bytes(), &cuts), &whole);
        if splits {
            let kept = |bytes: &[u8]| bytes.iter().filter(|byte| !b"\r\n".contains(byte)).copied().collect::<Vec<_>>();
            let bodies: Vec<u8> = whole.0.iter().flat_map(|record| record.body.clone()).collect();
            prop_assert_eq!(kept(&bodies), kept(text.as_bytes()));
        }
    }
}

fn read_plain(settings: &PlainSettings, log: &[u8], cuts: &[usize]) -> (Vec<OwnedRecord>, u64) {
    let mut decoder = PlainLogDecoder::new(settings.clone());
    let mut records = Records::with_room(usize::MAX);
    let position = |at: usize| LinePosition { generation: 1, offset: at as u64 };
    let (mut at, mut end) = (0, 0);
    for cut in cuts.iter().cycle() {
        end = (end + cut).min(log.len());
        at += decoder.push(&log[at..end], position(at), OBSERVED, &mut records);
        if end == log.len() {
            break;
        }
    }
    at += decoder.flush(&log[at..], position(at), OBSERVED, &mut records);
    assert!(at == log.len() && records.has_room());
    (records.all, decoder.take_counts().truncated_bytes)
}
