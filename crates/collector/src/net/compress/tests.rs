use std::{future::poll_fn, io::Read, pin::pin};

use bytes::Buf as _;
use http_body::Body;

use super::*;

fn parts(sizes: &[usize]) -> Vec<Bytes> {
    let mut next = 1u64;
    // A cheap generator: neither constant nor random, like telemetry.
    let mut byte = || {
        next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (next >> 60) as u8
    };
    sizes.iter().map(|size| (0..*size).map(|_| byte()).collect()).collect()
}

fn unpack(codec: CompressionCodec, packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match codec {
        CompressionCodec::Gzip => flate2::read::GzDecoder::new(packed).read_to_end(&mut plain).unwrap(),
        CompressionCodec::Zlib => flate2::read::ZlibDecoder::new(packed).read_to_end(&mut plain).unwrap(),
        CompressionCodec::Zstd => zstd::Decoder::new(packed).unwrap().read_to_end(&mut plain).unwrap(),
        CompressionCodec::SnappyBlock => {
            plain = snap::raw::Decoder::new().decompress_vec(packed).unwrap();
            plain.len()
        }
        CompressionCodec::SnappyFrames => snap::read::FrameDecoder::new(packed).read_to_end(&mut plain).unwrap(),
        CompressionCodec::Lz4 => lz4_flex::frame::FrameDecoder::new(packed).read_to_end(&mut plain).unwrap(),
    };
    plain
}

const ALL: [CompressionCodec; 6] = [
    CompressionCodec::Gzip,
    CompressionCodec::Zlib,
    CompressionCodec::Zstd,
    CompressionCodec::SnappyBlock,
    CompressionCodec::SnappyFrames,
    CompressionCodec::Lz4,
];

#[tokio::test]
async fn what_is_packed_is_the_concatenation() {
    for codec in ALL {
        let encoder = BodyEncoder::new(codec);
        // The second and third round use the encoder of the first.
        for sizes in [&[10, 0, 70_000, 1][..], &[300_000], &[], &[0]] {
            let parts = parts(sizes);
            let packed = encoder.encode(parts.iter(), 5).await.unwrap();
            let (room, packed) = packed.split_at(5);
            assert_eq!(room, [0; 5]);
            assert!(unpack(codec, packed) == parts.concat(), "{codec:?} {sizes:?}");
        }
    }
}

#[tokio::test]
async fn an_encoder_that_was_interrupted_leaves_nothing_behind() {
    for codec in ALL {
        let encoder = BodyEncoder::new(codec);
        let large = parts(&[SLICE_BYTES, SLICE_BYTES, SLICE_BYTES]);
        {
            let mut work = pin!(encoder.encode(large.iter(), 0));
            // The first slice is done, and the rest waits for the next poll.
            assert!(poll_fn(|cx| std::task::Poll::Ready(work.as_mut().poll(cx))).await.is_pending());
        }
        let small = parts(&[100]);
        let packed = encoder.encode(small.iter(), 0).await.unwrap();
        assert!(unpack(codec, &packed) == small.concat(), "{codec:?}");
        assert!(encoder.idle_encoders.lock().len() <= 1);
    }
}

#[tokio::test]
async fn many_at_once_share_as_many_encoders_as_there_are_cores() {
    let encoder = std::sync::Arc::new(BodyEncoder::new(CompressionCodec::Gzip));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let encoder = encoder.clone();
            tokio::spawn(async move { encoder.encode(parts(&[100_000]).iter(), 0).await.unwrap() })
        })
        .collect();
    for task in tasks {
        assert!(unpack(CompressionCodec::Gzip, &task.await.unwrap()) == parts(&[100_000]).concat());
    }
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!(encoder.idle_encoders.lock().len() <= cores);
}

#[tokio::test]
async fn a_payload_is_its_pieces_without_a_copy() {
    let pieces = vec![Bytes::from(vec![1u8; 10]), Bytes::new(), Bytes::from(vec![2u8; 20])];
    let expected: Vec<_> = [&pieces[0], &pieces[2]].iter().map(|piece| piece.as_ptr()).collect();
    let mut payload = pin!(RequestBody::new(pieces));
    assert_eq!(payload.size_hint().exact(), Some(30));
    let mut seen = Vec::new();
    while let Some(frame) = poll_fn(|cx| payload.as_mut().poll_frame(cx)).await {
        let mut rope = frame.unwrap().into_data().unwrap();
        while rope.has_remaining() {
            seen.push(rope.chunk().as_ptr());
            rope.advance(rope.chunk().len());
        }
    }
    assert_eq!(seen, expected);
    assert!(payload.is_end_stream() && payload.size_hint().exact() == Some(0));
}
