//! Opens files and directories below the directories of the patterns.
//!
//! *Guarantees*: no symbolic link below a base directory is followed, unless the policy allows it; with
//! `LinkPolicy::Into`, what is opened is below one of those directories, even if somebody changes links meanwhile. Only
//! regular files are opened as files, and opening never waits (for the writer of a FIFO, for example).
//!
//! *Assumes*: the base directories are the administrator's; links on the way to them are followed.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::settings::LinkPolicy;

/// How often `openat2` is tried again when a rename elsewhere interrupted it.
const MAX_INTERRUPTED_OPENS: usize = 8;

/// Opens what patterns lead to.
#[derive(Debug)]
pub(crate) struct FileOpener {
    links: LinkPolicy,
    lacks_openat2: AtomicBool,
}

/// Why something was not opened.
#[derive(Debug)]
pub(crate) enum OpenFailure {
    /// It is not there, or not any more, or it is no regular file.
    Absent,
    RefusedLink,
    Io(io::Error),
}

impl From<Errno> for OpenFailure {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::NXIO => Self::Absent,
            Errno::LOOP => Self::RefusedLink,
            other => Self::Io(other.into()),
        }
    }
}

impl FileOpener {
    pub(crate) fn new(links: LinkPolicy) -> Self {
        Self { links, lacks_openat2: AtomicBool::new(false) }
    }

    /// Opens a directory for listing; an empty `relative` is the base directory itself.
    pub(crate) fn open_directory(&self, base: &Path, relative: &Path) -> Result<OwnedFd, OpenFailure> {
        self.open(base, relative, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, base: &Path, relative: &Path) -> Result<File, OpenFailure> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = self.open(base, relative, flags)?;
        let status = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(OpenFailure::Absent);
        }
        Ok(File::from(file))
    }

    fn open(&self, base: &Path, relative: &Path, flags: OFlags) -> Result<OwnedFd, OpenFailure> {
        let base = if base.as_os_str().is_empty() { Path::new(".") } else { base };
        let base_directory = open_base(base)?;
        if relative.as_os_str().is_empty() {
            return Ok(rustix::fs::openat(&base_directory, ".", flags, Mode::empty())?);
        }
        match self.open_beneath(base_directory.as_fd(), relative, flags) {
            Err(Errno::LOOP) => self.open_through_link(base, relative, flags),
            result => Ok(result?),
        }
    }

    fn open_through_link(&self, base: &Path, relative: &Path, flags: OFlags) -> Result<OwnedFd, OpenFailure> {
        match &self.links {
            LinkPolicy::Refuse => Err(OpenFailure::RefusedLink),
            LinkPolicy::Follow => Ok(rustix::fs::openat(CWD, base.join(relative), flags, Mode::empty())?),
            LinkPolicy::Into(roots) => {
                let target = std::fs::canonicalize(base.join(relative)).map_err(classify)?;
                for root in roots {
                    let Ok(root) = std::fs::canonicalize(root) else { continue };
                    if let Ok(rest) = target.strip_prefix(&root) {
                        // The path has no link by now; one that appears meanwhile is refused.
                        return Ok(self.open_beneath(open_base(&root)?.as_fd(), rest, flags)?);
                    }
                }
                Err(OpenFailure::RefusedLink)
            }
        }
    }

    /// Opens without following any link: a link anywhere is `ELOOP`.
    fn open_beneath(&self, directory: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        for _ in 0..MAX_INTERRUPTED_OPENS {
            if self.lacks_openat2.load(Ordering::Relaxed) {
                break;
            }
            match rustix::fs::openat2(directory, relative, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                // Old kernels do not know the call, and some sandboxes answer so for what they do not know.
                Err(Errno::NOSYS | Errno::PERM) => self.lacks_openat2.store(true, Ordering::Relaxed),
                result => return result,
            }
        }
        open_by_components(directory, relative, flags)
    }
}

/// Opens one component after the other, none of which may be a link.
fn open_by_components(directory: BorrowedFd<'_>, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut current = rustix::fs::openat(directory, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mut components = relative.components().peekable();
    while let Some(component) = components.next() {
        let Component::Normal(name) = component else { return Err(Errno::XDEV) };
        let is_last = components.peek().is_none();
        let wanted = if is_last { flags } else { OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC };
        current = match rustix::fs::openat(&current, name, wanted | OFlags::NOFOLLOW, Mode::empty()) {
            // With O_DIRECTORY, a link is "not a directory".
            Err(Errno::NOTDIR) => {
                let status = rustix::fs::statat(&current, name, AtFlags::SYMLINK_NOFOLLOW)?;
                let is_link = FileType::from_raw_mode(status.st_mode) == FileType::Symlink;
                return Err(if is_link { Errno::LOOP } else { Errno::NOTDIR });
            }
            result => result?,
        };
    }
    Ok(current)
}

fn open_base(base: &Path) -> Result<OwnedFd, OpenFailure> {
    Ok(rustix::fs::openat(CWD, base, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn classify(error: io::Error) -> OpenFailure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => OpenFailure::Absent,
        _ => OpenFailure::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Tree {
        directory: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            for name in ["base/sub", "runtime"] {
                std::fs::create_dir_all(directory.path().join(name)).unwrap();
            }
            for name in ["base/sub/a.log", "runtime/r.log", "secret"] {
                std::fs::write(directory.path().join(name), name).unwrap();
            }
            let path = |name: &str| directory.path().join(name);
            symlink(path("secret"), path("base/sub/secret.log")).unwrap();
            symlink(path("runtime/r.log"), path("base/sub/r.log")).unwrap();
            symlink(path("runtime"), path("base/linked")).unwrap();
            symlink(path("nothing"), path("base/dangling")).unwrap();
            Self { directory }
        }

        fn open(&self, links: LinkPolicy, lacks_openat2: bool, relative: &str) -> &'static str {
            let opener = FileOpener::new(links);
            opener.lacks_openat2.store(lacks_openat2, Ordering::Relaxed);
            match opener.open_file(&self.directory.path().join("base"), Path::new(relative)) {
                Ok(_) => "opened",
                Err(OpenFailure::Absent) => "absent",
                Err(OpenFailure::RefusedLink) => "refused",
                Err(OpenFailure::Io(error)) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn links_are_followed_only_as_the_policy_says() {
        let tree = Tree::new();
        for lacks in [false, true] {
            let into = || LinkPolicy::Into(vec![tree.directory.path().join("runtime")]);
            let all = |relative| {
                [LinkPolicy::Refuse, into(), LinkPolicy::Follow].map(|links| tree.open(links, lacks, relative))
            };
            assert_eq!(all("sub/a.log"), ["opened"; 3]);
            assert_eq!(all("sub/r.log"), ["refused", "opened", "opened"]);
            assert_eq!(all("linked/r.log"), ["refused", "opened", "opened"]);
            assert_eq!(all("sub/secret.log"), ["refused", "refused", "opened"]);
            assert_eq!(all("dangling"), ["refused", "absent", "absent"]);
            assert_eq!(all("sub"), ["absent"; 3]);
            assert_eq!(all("none/x"), ["absent"; 3]);
        }
    }

    #[test]
    fn fifo_is_no_file_and_does_not_block() {
        let tree = Tree::new();
        let path = tree.directory.path().join("base/fifo");
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(tree.open(LinkPolicy::Refuse, false, "fifo"), "absent");
    }
}
