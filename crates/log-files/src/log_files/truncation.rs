//! Files that were cut or overwritten: what is in them now is a new generation.

use super::LogFiles;
use crate::{
    events::LossCause, generation::Generation, log_stream::LogLayout, open_file::OpenFile, position::StreamId,
    settings::OnTruncate,
};

impl LogFiles {
    /// Compares the last file with what was read of it.
    pub(super) fn look_for_truncation(&mut self, id: StreamId) {
        let last = self.streams.get_mut(&id).and_then(|stream| stream.generations.back_mut());
        let Some(generation) = last else { return };
        let opened = generation.plain.as_mut().map(|slot| slot.open(&self.opener));
        let Some(Ok(Some(file))) = opened else { return };
        if !generation.awaits_growth && generation.is_intact(&file).is_ok_and(|is_intact| !is_intact) {
            self.begin_after_truncation(id, &file);
        }
    }

    /// The last file of the stream holds other content than what was read.
    pub(super) fn begin_after_truncation(&mut self, id: StreamId, file: &OpenFile) {
        let Ok(status) = file.status() else { return };
        let fingerprint_size = self.settings.fingerprint_size;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let number = stream.next_number();
        let layout = stream.layout;
        let Some(cut) = stream.generations.back_mut() else { return };
        let read = cut.mark.map_or(0, |mark| mark.offset);
        let has_head = cut.head.length > 0 && cut.head.is_of(file).unwrap_or(false);
        let start = match self.settings.on_truncate {
            _ if layout == LogLayout::Kubelet || !has_head => 0,
            OnTruncate::Ignore if status.size <= read => {
                cut.awaits_growth = true;
                cut.size = cut.size.max(read);
                return;
            }
            OnTruncate::Ignore | OnTruncate::ReadWholeFile => 0,
            OnTruncate::ReadNew => status.size,
        };
        let mut next = Generation::new(number, cut.key);
        next.start = start;
        next.plain = cut.plain.take();
        next.rotated_at = cut.rotated_at.take();
        let _ = next.look_at_plain(file, fingerprint_size);
        cut.lost = Some(LossCause::Truncated);
        cut.is_complete = true;
        cut.awaits_growth = false;
        // A copy that was made before may be found in the directory.
        cut.awaits_scan = true;
        let path = next.plain.as_ref().and_then(|slot| slot.name.as_ref()).map_or(&stream.path, |name| &name.path);
        let directory = path.parent().map(Into::into);
        self.owners.insert(next.key, (id, number));
        stream.generations.push_back(next);
        self.awaiting_scan.insert(id);
        self.changes.directories.extend(directory);
        self.recheck_copies(id);
        self.positions.note_change();
        self.care_soon(id);
        self.wake_stream(id);
    }
}
