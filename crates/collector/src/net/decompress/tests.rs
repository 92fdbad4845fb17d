use std::io::Write;

use super::*;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Every algorithm, with its compressed form of `data`.
fn compressed(data: &[u8]) -> Vec<(CompressionType, Vec<u8>)> {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(data).unwrap();
    let mut snappy = snap::write::FrameEncoder::new(Vec::new());
    snappy.write_all(data).unwrap();
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(data).unwrap();
    vec![
        (CompressionType::None, data.to_vec()),
        (CompressionType::Gzip, gzip(data)),
        (CompressionType::Zlib, zlib.finish().unwrap()),
        (CompressionType::Zstd, zstd::encode_all(data, 0).unwrap()),
        (CompressionType::Snappy, snappy.into_inner().unwrap()),
        (CompressionType::Snappy, snap::raw::Encoder::new().compress_vec(data).unwrap()),
        (CompressionType::Lz4, lz4.finish().unwrap()),
    ]
}

fn unlimited(_: usize) -> Result<(), Refusal> {
    Ok(())
}

#[test]
fn what_was_compressed_comes_back() {
    for size in [0, 1, 5, 1000, 100_000] {
        let data: Vec<u8> = (0..size).map(|i| (i * i % 251) as u8).collect();
        for (algorithm, body) in compressed(&data) {
            let out = decompress(algorithm, &body, 1 << 20, &mut unlimited).unwrap();
            assert_eq!(out, data, "{algorithm:?} {size}");
            let out = decompress(algorithm, &body, size, &mut unlimited).unwrap();
            assert_eq!(out, data, "{algorithm:?} {size}, with a limit that is just enough");
        }
    }
}

#[test]
fn a_bomb_is_refused_and_little_memory_was_asked_for() {
    let bomb = vec![0u8; 16 << 20];
    for (algorithm, body) in compressed(&bomb) {
        let mut reserved = 0;
        let mut reserve = |more: usize| {
            reserved += more;
            Ok(())
        };
        let result = decompress(algorithm, &body, 1 << 20, &mut reserve);
        assert!(matches!(result, Err(DecompressError::TooLarge(_))), "{algorithm:?}");
        let buffers = if algorithm == CompressionType::Lz4 { lz4_buffers(&body) } else { 0 };
        assert!(reserved <= (1 << 20) + buffers, "{algorithm:?} asked for {reserved}");
    }
}

#[test]
fn buffers_that_a_short_body_of_lz4_announces_are_asked_for() {
    use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
    for (size, bytes) in [(BlockSize::Max64KB, 64 << 10), (BlockSize::Max1MB, 1 << 20), (BlockSize::Max4MB, 4 << 20)] {
        let mut encoder = FrameEncoder::with_frame_info(FrameInfo::new().block_size(size), Vec::new());
        encoder.write_all(b"short").unwrap();
        let body = encoder.finish().unwrap();
        let mut reserved = 0;
        let mut reserve = |more: usize| {
            reserved += more;
            Ok(())
        };
        assert_eq!(decompress(CompressionType::Lz4, &body, 1000, &mut reserve).unwrap(), b"short");
        assert!(reserved > 2 * bytes, "{size:?} asked for {reserved}");
        let refused = decompress(CompressionType::Lz4, &body, 1000, &mut |more| {
            if more < 100_000 { Ok(()) } else { Err(Refusal::out_of_memory()) }
        });
        assert!(matches!(refused, Err(DecompressError::Refused(_))), "{size:?}");
    }
}

#[test]
fn names_of_algorithms_in_upper_case_are_unknown_as_in_the_collector() {
    for name in ["gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4"] {
        assert!(parse_encoding(name).is_some(), "{name}");
        assert_eq!(parse_encoding(&name.to_uppercase()), None, "{name}");
    }
    assert_eq!(parse_encoding("identity"), None);
}

#[test]
fn body_that_outgrows_its_promise_just_below_the_limit_is_read_or_refused() {
    let data: Vec<u8> = (0..6000_u32).map(|i| (i * i % 251) as u8).collect();
    let mut body = gzip(&data);
    // A trailer with a wrong length is found out only at the end.
    let trailer = body.len() - 4;
    body[trailer..].copy_from_slice(&5000_u32.to_le_bytes());
    for max in [5000, 5001, 5500, 5999] {
        let result = decompress(CompressionType::Gzip, &body, max, &mut unlimited);
        assert!(matches!(result, Err(DecompressError::TooLarge(_))), "{max}: {result:?}");
    }
    for (algorithm, body) in compressed(&data) {
        for max in [6000, 6001, 6100, 7000] {
            assert_eq!(decompress(algorithm, &body, max, &mut unlimited).unwrap(), data, "{algorithm:?} {max}");
        }
    }
}

#[test]
fn a_gzip_trailer_that_promises_too_much_costs_nothing() {
    let body = gzip(&vec![0u8; 16 << 20]);
    let mut never = |_: usize| -> Result<(), Refusal> { panic!("asked for memory") };
    assert!(matches!(decompress(CompressionType::Gzip, &body, 1 << 20, &mut never), Err(DecompressError::TooLarge(_))));
}

#[test]
fn truncated_and_foreign_bodies_are_corrupt() {
    let data = vec![7u8; 5000];
    for (algorithm, body) in compressed(&data) {
        if algorithm == CompressionType::None {
            continue;
        }
        let cut = &body[..body.len() - 5];
        let result = decompress(algorithm, cut, 1 << 20, &mut unlimited);
        assert!(matches!(result, Err(DecompressError::Corrupt { .. })), "{algorithm:?} cut: {result:?}");
        let result = decompress(algorithm, b"this is not compressed at all", 1 << 20, &mut unlimited);
        assert!(matches!(result, Err(DecompressError::Corrupt { .. })), "{algorithm:?} foreign: {result:?}");
    }
}

#[test]
fn no_memory_is_a_refusal() {
    let body = gzip(&vec![1u8; 5000]);
    let mut none = |_: usize| Err(Refusal::out_of_memory());
    assert!(matches!(decompress(CompressionType::Gzip, &body, 1 << 20, &mut none), Err(DecompressError::Refused(_))));
}
