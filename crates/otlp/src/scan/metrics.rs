//! Metrics go two levels deeper than spans: a metric holds one data message of five kinds, and that holds the points.

use super::error::{Fault, ScanErrorKind};
use super::shape::{self, Shape};
use super::{Record, next_field};
use crate::numbers::{data, metric};

#[inline]
pub(super) fn scan_metric(bytes: &[u8]) -> Result<Record<'_>, Fault> {
    let mut record = Record { trace_id: &[], items: 0, zero_ids: false };
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
        // Protobuf merges two of one kind, and the Collector takes the last one: nobody could say what is in it.
        if std::mem::replace(&mut has_data, true) {
            return Err(Fault::new(ScanErrorKind::RepeatedData, start));
        }
    }
    Ok(record)
}

/// Checks a data message and counts its points.
fn scan_data(bytes: &[u8], data_shape: &Shape, point_shape: &Shape) -> Result<usize, Fault> {
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
fn scan_point(bytes: &[u8], shape: &Shape) -> Result<(), Fault> {
    let mut rest = bytes;
    while !rest.is_empty() {
        next_field(&mut rest, shape)?;
    }
    Ok(())
}
