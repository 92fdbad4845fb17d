//! The keys of the objects that are being written, so that of two members with the same key only the last remains.

use kubewake_otlp::wire::WireField;

/// Members of all objects of a line, at most. It bounds the comparisons that a line can cause.
const MAX_MEMBERS: usize = 1024;

/// Members for which memory is kept between requests.
const KEPT_MEMBERS: usize = 32;

/// A member that was written.
#[derive(Clone, Copy, Debug)]
struct WrittenMember {
    /// A hash of its key, by which others are told apart quickly.
    hash: u32,
    /// Where it begins in the output.
    start: usize,
    is_replaced: bool,
}

/// The members of the objects that are being written, those of outer objects first.
#[derive(Debug, Default)]
pub(super) struct ObjectKeys {
    members: Vec<WrittenMember>,
    /// The first member of the innermost object.
    frame: usize,
    /// Members that the line may still have.
    members_left: usize,
}

impl ObjectKeys {
    pub(super) fn clear(&mut self) {
        self.members.clear();
        self.frame = 0;
        self.members_left = MAX_MEMBERS;
    }

    /// Releases the memory that objects with many members have left.
    pub(super) fn release_memory(&mut self) {
        self.members.clear();
        self.members.shrink_to(KEPT_MEMBERS);
    }

    /// Begins an object within another. Returns what [`ObjectKeys::end_object`] gets.
    pub(super) fn begin_object(&mut self) -> usize {
        std::mem::replace(&mut self.frame, self.members.len())
    }

    /// Notes a member that is written next, at the end of `out`. `None` if there are too many.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8], out: &[u8]) -> Option<()> {
        self.members_left = self.members_left.checked_sub(1)?;
        let hash = hash_key(key);
        for member in self.members.iter_mut().skip(self.frame) {
            if member.hash == hash && !member.is_replaced && written_key(out, member.start) == Some(key) {
                member.is_replaced = true;
            }
        }
        self.members.push(WrittenMember { hash, start: out.len(), is_replaced: false });
        Some(())
    }

    /// Ends the innermost object, whose members are the last bytes of `out`: removes those that were replaced.
    pub(super) fn end_object(&mut self, outer_frame: usize, out: &mut Vec<u8>) {
        let frame = std::mem::replace(&mut self.frame, outer_frame);
        if self.members.iter().skip(frame).any(|member| member.is_replaced) {
            self.compact(frame, out);
        }
        self.members.truncate(frame);
    }

    #[cold]
    fn compact(&mut self, frame: usize, out: &mut Vec<u8>) {
        let members = self.members.get(frame..).unwrap_or_default();
        let ends = members.iter().skip(1).map(|member| member.start).chain([out.len()]);
        let mut to = members.first().map_or(out.len(), |member| member.start);
        for (member, end) in members.iter().zip(ends) {
            if !member.is_replaced {
                out.copy_within(member.start..end, to);
                to += end - member.start;
            }
        }
        out.truncate(to);
    }
}

/// A hash of the length and of some bytes of a key.
#[inline]
fn hash_key(key: &[u8]) -> u32 {
    let word = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let ends = match key {
        [first, .., last] if key.len() < 4 => u32::from(*first) | u32::from(*last) << 8,
        [only] => u32::from(*only),
        _ => word(key.first_chunk()) ^ word(key.last_chunk()).rotate_left(13),
    };
    let middle = key.get(key.len() / 2).map_or(0, |byte| u32::from(*byte) << 24);
    (ends ^ middle ^ key.len() as u32).wrapping_mul(0x9e37_79b1)
}

/// The key of the `KeyValue` that begins at `start`.
#[cold]
fn written_key(out: &[u8], start: usize) -> Option<&[u8]> {
    // Members are followed by others; the one in front of this is complete.
    let mut rest = out.get(start..)?;
    let mut key_value = WireField::read(&mut rest).ok()?.as_len()?;
    WireField::read(&mut key_value).ok()?.as_len()
}
