//! Scans metrics, which nest two levels deeper than spans: a metric has one of five data messages, with points.

use super::error::{ScanErrorKind, ScanFault};
use super::shape::{self, MessageShape};
use super::{ScannedRecord, next_field};
use crate::field_numbers::{data, metric};

#[inline]
pub(super) fn scan_metric(bytes: &[u8]) -> Result<ScannedRecord<'_>, ScanFault> {
    let mut record = ScannedRecord { trace_id: &[], items: 0, zero_ids: false };
    let mut has_data = false;
    let mut rest = bytes;
    while !rest.is_empty() {
        let start = rest;
        let (number, content) = next_field(&mut rest, &shape::METRIC)?;
        record.items = match number {
            metric::GAUGE => scan_data(content, &shape::POINTS, &shape::NUMBER_POINT)?,
            metric::SUM => scan_data(content, &shape::SUM, &shape::NUMBER_POINT)?,
            metric::HISTOGRAM => scan_data(content, &shape::POINTS_OVER_TIME, &shape::HISTOGRAM_POINT)?,
            metric::EXPONENTIAL_HISTOGRAM => scan_data(content, &shape::POINTS_OVER_TIME, &shape::EXPONENTIAL_POINT)?,
            metric::SUMMARY => scan_data(content, &shape::POINTS, &shape::SUMMARY_POINT)?,
            _ => continue,
        };
        // Protobuf merges two of one type, and the Collector takes the last one: this would be ambiguous.
        if std::mem::replace(&mut has_data, true) {
            return Err(ScanFault::new(ScanErrorKind::RepeatedData, start));
        }
    }
    Ok(record)
}

/// Checks a data message and counts its points.
fn scan_data(bytes: &[u8], data_shape: &MessageShape, point_shape: &MessageShape) -> Result<usize, ScanFault> {
    let mut points = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (number, content) = next_field(&mut rest, data_shape)?;
        if number == data::POINTS {
            points += 1;
            scan_point(content, point_shape)?;
        }
    }
    Ok(points)
}

#[inline]
fn scan_point(bytes: &[u8], shape: &MessageShape) -> Result<(), ScanFault> {
    let mut rest = bytes;
    while !rest.is_empty() {
        next_field(&mut rest, shape)?;
    }
    Ok(())
}
