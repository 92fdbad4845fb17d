//! The `tracestate` of W3C Trace Context, and OpenTelemetry's part of it: `ot=rv:…;th:…`.
//!
//! [`TraceState`] reads one in place. Guaranteed: an accepted state follows the grammar of W3C and of
//! OpenTelemetry within their limits (1024 bytes, 32 members, 256 bytes of `ot`), so that its `th` and `rv` are
//! valid. A written state is within the same limits: other members are never changed, and the last of them are
//! dropped where `ot` leaves no room. Nothing allocates.

mod grammar;

#[cfg(test)]
mod tests;

use crate::probability::{Randomness, Threshold};

/// Limit of a trace state.
const MAX_STATE_BYTES: usize = 1024;
const MAX_MEMBERS: usize = 32;
/// Limit of the value of `ot`.
const MAX_OT_BYTES: usize = 256;
/// The key of OpenTelemetry's member.
const OT_KEY: &[u8] = b"ot=";

/// Why bytes are not a valid trace state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceStateError {
    /// More bytes, members or characters of a key than W3C allows.
    #[error("the trace state is too long")]
    TooLong,
    /// Not a list of `key=value`, or its `ot` not a list of `key:value`.
    #[error("the trace state does not follow its grammar")]
    Syntax,
    /// A `th` that is not one to 14 hexadecimal digits.
    #[error("th is not one to 14 hexadecimal digits")]
    Threshold,
    /// An `rv` that is not 14 hexadecimal digits.
    #[error("rv is not 14 hexadecimal digits")]
    Randomness,
}

/// A trace state, read in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceState<'a> {
    text: &'a [u8],
    ot: &'a [u8],
    threshold: Option<Threshold>,
    randomness: Option<(&'a [u8], Randomness)>,
}

impl<'a> TraceState<'a> {
    /// Parses a trace state. Empty text is valid, too.
    pub fn parse(text: &'a [u8]) -> Result<Self, TraceStateError> {
        let mut state = Self { text, ..Self::default() };
        if text.is_empty() {
            return Ok(state);
        }
        if text.len() > MAX_STATE_BYTES {
            return Err(TraceStateError::TooLong);
        }
        for (count, member) in grammar::members(text).enumerate() {
            let (key, value) = grammar::member(member)?;
            if count >= MAX_MEMBERS {
                return Err(TraceStateError::TooLong);
            }
            if key == b"ot" {
                state.read_ot(value)?;
            }
        }
        Ok(state)
    }

    /// Of several `ot` the last one counts, and of several `th` or `rv` in it too.
    fn read_ot(&mut self, value: &'a [u8]) -> Result<(), TraceStateError> {
        if value.len() > MAX_OT_BYTES {
            return Err(TraceStateError::TooLong);
        }
        (self.ot, self.threshold, self.randomness) = (value, None, None);
        for pair in value.split(|byte| *byte == b';') {
            match grammar::ot_member(pair)? {
                (b"th", text) => self.threshold = Some(Threshold::parse(text).ok_or(TraceStateError::Threshold)?),
                (b"rv", text) => {
                    self.randomness = Some((text, Randomness::parse(text).ok_or(TraceStateError::Randomness)?));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// `th`: the threshold of earlier sampling.
    pub fn threshold(&self) -> Option<Threshold> {
        self.threshold
    }

    /// `rv`: the randomness that replaces the trace id's.
    pub fn randomness(&self) -> Option<Randomness> {
        self.randomness.map(|(_, randomness)| randomness)
    }

    /// Writes the state with another `th`, or none, and adds `rv` if it has none and `randomness` is given.
    /// `ot` comes first, as W3C requires of the last changed member.
    pub fn write(&self, threshold: Option<Threshold>, randomness: Option<Randomness>, out: &mut Vec<u8>) {
        let start = out.len();
        let threshold = threshold.filter(|threshold| *threshold != Threshold::NEVER).map(Threshold::hex);
        let computed = randomness.map(Randomness::hex);
        let randomness = self.randomness.map(|(text, _)| text).or(computed.as_ref().map(|hex| hex.as_bytes()));
        let values = [(b"rv:", randomness), (b"th:", threshold.as_ref().map(|hex| hex.as_bytes()))];
        for (name, text) in values.into_iter().filter_map(|(name, text)| text.map(|text| (name, text))) {
            out.extend_from_slice(if out.len() == start { OT_KEY } else { b";" });
            out.extend_from_slice(name);
            out.extend_from_slice(text);
        }
        for pair in self.ot.split(|byte| *byte == b';').filter(|pair| is_extra(pair)) {
            // A longer `th`, or a new `rv`, may leave no room for all members.
            let is_first = out.len() == start;
            if !is_first && out.len() - start - OT_KEY.len() + 1 + pair.len() > MAX_OT_BYTES {
                break;
            }
            out.extend_from_slice(if is_first { OT_KEY } else { b";" });
            out.extend_from_slice(pair);
        }
        let room = MAX_MEMBERS - usize::from(out.len() > start);
        for member in grammar::members(self.text).filter(|member| !member.starts_with(OT_KEY)).take(room) {
            let separator = usize::from(out.len() > start);
            if out.len() - start + separator + member.len() > MAX_STATE_BYTES {
                break;
            }
            if separator > 0 {
                out.push(b',');
            }
            out.extend_from_slice(member);
        }
    }
}

/// Whether a pair of `ot` is not about sampling.
fn is_extra(pair: &[u8]) -> bool {
    !pair.is_empty() && !pair.starts_with(b"th:") && !pair.starts_with(b"rv:")
}
