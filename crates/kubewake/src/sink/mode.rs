//! The mode of the sink: how it responds to requests.

use std::{fmt, str::FromStr, time::Duration};

use crate::load::GRPC_NAMES;

/// The current mode, which can be changed at any time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SinkMode {
    /// Requests are neither read nor answered.
    pub hang: bool,
    pub delay: Duration,
    /// Share of requests that fail.
    pub fail_share: f64,
    pub fail_code: FailureCode,
    /// Retry delay in responses that report a failure.
    pub retry_after: Option<Duration>,
    /// Items that a partial success rejects.
    pub reject_items: u64,
}

impl SinkMode {
    /// Changes one setting, by its name in `POST /mode`.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "hang" => self.hang = parse_setting(value)?,
            "delay_ms" => self.delay = Duration::from_millis(parse_setting(value)?),
            "fail_share" => self.fail_share = parse_share(value)?,
            "fail_code" => self.fail_code = parse_setting(value)?,
            "retry_after_ms" => self.retry_after = nonzero_millis(parse_setting(value)?),
            "reject_items" => self.reject_items = parse_setting(value)?,
            _ => {
                return Err(format!(
                    "unknown field {key:?}: use hang, delay_ms, fail_share, fail_code, retry_after_ms or reject_items"
                ));
            }
        }
        Ok(())
    }

    /// Decides at random whether the next request fails.
    pub(super) fn draw_failure(&self) -> bool {
        self.fail_share > 0.0 && fastrand::f64() < self.fail_share
    }

    /// As JSON, with the names of `set`.
    pub(super) fn to_json(self) -> serde_json::Value {
        serde_json::json!({
            "hang": self.hang,
            "delay_ms": self.delay.as_millis() as u64,
            "fail_share": self.fail_share,
            "fail_code": self.fail_code.to_string(),
            "retry_after_ms": self.retry_after.map_or(0, |after| after.as_millis() as u64),
            "reject_items": self.reject_items,
        })
    }
}

fn parse_setting<T: FromStr<Err: fmt::Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{value:?}: {error}"))
}

fn nonzero_millis(milliseconds: u64) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
}

/// A number from 0 to 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share: f64 = parse_setting(text)?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("the number must be from 0 to 1".to_owned()) }
}

/// A number with `ms` or `s`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s').ok_or("write a number with ms or s")?, 1.0),
    };
    Duration::try_from_secs_f64(parse_setting::<f64>(number)? * unit).map_err(|error| error.to_string())
}

/// The status of a failure in both protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FailureCode {
    pub grpc: u16,
    pub http: http::StatusCode,
}

/// Pairs of HTTP status and gRPC code, by the OTLP specification or gRPC's own mapping. Used in both
/// directions; the first match counts.
const STATUS_CODE_PAIRS: [(u16, u16); 17] = [
    (503, 14),
    (429, 8),
    (400, 3),
    (500, 13),
    (401, 16),
    (403, 7),
    (404, 5),
    (404, 12),
    (504, 4),
    (502, 14),
    (409, 10),
    (413, 8),
    (499, 1),
    (500, 2),
    (500, 15),
    (400, 9),
    (400, 11),
];

impl FailureCode {
    /// A failure that no sender should retry.
    pub(super) const INVALID_ARGUMENT: Self = Self { grpc: 3, http: http::StatusCode::BAD_REQUEST };
}

impl FromStr for FailureCode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(status) = text.parse::<u16>() {
            let http = http::StatusCode::from_u16(status).map_err(|error| error.to_string())?;
            let grpc = STATUS_CODE_PAIRS.iter().find(|(http, _)| *http == status).map_or(2, |(_, grpc)| *grpc);
            return Ok(Self { grpc, http });
        }
        let known = GRPC_NAMES.iter().position(|name| *name == text).filter(|code| *code > 0);
        let Some(grpc) = known.map(|code| code as u16) else {
            return Err(format!("{text:?} is neither an HTTP status nor the name of a gRPC code"));
        };
        let http = STATUS_CODE_PAIRS.iter().find(|(_, code)| *code == grpc).map_or(500, |(http, _)| *http);
        Ok(Self { grpc, http: http::StatusCode::from_u16(http).map_err(|error| error.to_string())? })
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(GRPC_NAMES.get(usize::from(self.grpc)).unwrap_or(&"UNKNOWN"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_understood_in_either_protocol() {
        let unavailable: FailureCode = "UNAVAILABLE".parse().unwrap();
        assert_eq!((unavailable.grpc, unavailable.http.as_u16()), (14, 503));
        let too_many: FailureCode = "429".parse().unwrap();
        assert_eq!((too_many.grpc, too_many.http.as_u16()), (8, 429));
        assert!("OK".parse::<FailureCode>().is_err());
        assert!("oops".parse::<FailureCode>().is_err());
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse_duration("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(parse_duration("2s"), Ok(Duration::from_secs(2)));
        assert!(parse_duration("2").is_err() && parse_duration("-1s").is_err());
    }
}
