//! Facts that hold for all spans of a request.

/// Facts that hold for all spans of a request, so that nobody has to read each of them. The default knows
/// nothing, as for logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanTraits {
    plain_ids: bool,
    /// A bit for each length of a key, modulo 64.
    key_lengths: u64,
}

impl Default for SpanTraits {
    fn default() -> Self {
        Self { plain_ids: false, key_lengths: u64::MAX }
    }
}

impl SpanTraits {
    /// The tag of an attribute's key.
    pub(super) const KEY: u8 = 0x0a;
    /// The traits of no spans at all.
    pub(super) const NONE: Self = Self { plain_ids: true, key_lengths: 0 };

    /// Whether every span begins with its trace id, which is not zero, and has no trace state.
    pub fn has_plain_ids(&self) -> bool {
        self.plain_ids
    }

    /// Whether a span may have an attribute with this key. Assumes that no key was written twice in one
    /// attribute.
    pub fn may_have(&self, key: &str) -> bool {
        self.key_lengths & bit(key.len() as u8) != 0
    }

    /// Notes a span that does not begin with its id, or has a trace state.
    #[inline(always)]
    pub(super) fn mark_ids_not_plain(&mut self) {
        self.plain_ids = false;
    }

    /// Notes an attribute with this beginning.
    #[inline(always)]
    pub(super) fn note_attribute(&mut self, content: &[u8]) {
        match content {
            [Self::KEY, length, ..] => self.note_key_length(*length),
            // An empty attribute has no key; in others the key may be behind the value.
            _ => self.key_lengths = u64::MAX,
        }
    }

    /// Notes a key by its length, or by the length's first byte.
    #[inline(always)]
    pub(super) fn note_key_length(&mut self, length: u8) {
        self.key_lengths |= bit(length);
    }
}

/// The first byte of a longer length is enough: it has the lowest seven bits.
#[inline(always)]
fn bit(length: u8) -> u64 {
    1 << (length & 63)
}
