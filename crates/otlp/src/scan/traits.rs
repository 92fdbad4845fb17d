//! What a scan saw of all spans together.

/// What is known of all spans of a request, so that whoever asks need not look at each of them. The default knows nothing: neither
/// do logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    plain_ids: bool,
    /// A bit for each length of a key, and for those that are a multiple of 64 longer.
    key_lengths: u64,
}

impl Default for Traits {
    fn default() -> Self {
        Self { plain_ids: false, key_lengths: u64::MAX }
    }
}

impl Traits {
    /// The tag of an attribute's key.
    pub(super) const KEY: u8 = 0x0a;
    /// Of no spans at all.
    pub(super) const NONE: Self = Self { plain_ids: true, key_lengths: 0 };

    /// Whether every span begins with its trace id, which is not zero, and has no trace state.
    pub fn has_plain_ids(&self) -> bool {
        self.plain_ids
    }

    /// Whether a span may have an attribute with this key. Assumes that no key was written twice in one attribute.
    pub fn may_have(&self, key: &str) -> bool {
        self.key_lengths & bit(key.len() as u8) != 0
    }

    /// There is a span that does not begin with its id, or has a trace state.
    #[inline(always)]
    pub(super) fn not_plain(&mut self) {
        self.plain_ids = false;
    }

    /// There is an attribute like that.
    #[inline(always)]
    pub(super) fn attribute(&mut self, content: &[u8]) {
        match content {
            [Self::KEY, length, ..] => self.key(*length),
            // An empty one has no key; of others it may stand behind the value.
            _ => self.key_lengths = u64::MAX,
        }
    }

    /// There is a key of that length, or of one whose first byte this is.
    #[inline(always)]
    pub(super) fn key(&mut self, length: u8) {
        self.key_lengths |= bit(length);
    }
}

/// Of a length that takes more than one byte the first one is enough: it has the lowest seven bits.
#[inline(always)]
fn bit(length: u8) -> u64 {
    1 << (length & 63)
}
