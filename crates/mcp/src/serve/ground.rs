//! Where commands run.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use outpost_client::{Error, Pending, Place, Surroundings};

/// Knows the place where commands run, and finds it again if it was lost.
pub trait Ground: Send + Sync {
    /// The place. As long as it is the same, the same is given.
    fn place(&self) -> Pending<'_, Arc<dyn Place>>;
}

/// A place that is always the same.
impl Ground for Arc<dyn Place> {
    fn place(&self) -> Pending<'_, Arc<dyn Place>> {
        let place = Arc::clone(self);
        Box::pin(async move { Ok(place) })
    }
}

/// A place, with what has to be known of it to use it.
pub(super) struct Footing {
    pub(super) place: Arc<dyn Place>,
    /// What understands a command line there.
    pub(super) shell: String,
    /// Where it is itself, if it says so.
    cwd: Option<PathBuf>,
    home: Option<PathBuf>,
    pub(super) os: String,
}

impl Footing {
    pub(super) async fn on(place: Arc<dyn Place>) -> Result<Self, Error> {
        let Surroundings {
            shell,
            cwd,
            user_home_dir,
            platform_os,
            ..
        } = place.environment().await?;
        Ok(Footing {
            place,
            shell: shell.path,
            cwd: cwd.map(|cwd| cwd.into_path()),
            home: user_home_dir.map(|home| home.into_path()),
            os: platform_os.unwrap_or_else(|| "an unknown system".to_owned()),
        })
    }

    /// The directory that relative paths begin at. A server that doesn't say where it
    /// is has a root all the same.
    pub(super) fn base(&self, chosen: Option<&str>) -> PathBuf {
        let root = Path::new("/");
        self.told_base(chosen)
            .unwrap_or_else(|| root.join(chosen.unwrap_or_default()))
    }

    /// The same, if somebody has told it and nobody has to guess.
    pub(super) fn told_base(&self, chosen: Option<&str>) -> Option<PathBuf> {
        let chosen = chosen.map(|chosen| self.at_home(chosen));
        match (&self.cwd, chosen) {
            (Some(cwd), Some(chosen)) => Some(cwd.join(chosen)),
            (cwd, None) => cwd.clone(),
            (None, Some(chosen)) => chosen.is_absolute().then_some(chosen),
        }
    }

    /// `~` is what people write, and no shell has seen it.
    pub(super) fn at_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(path),
        }
    }
}
