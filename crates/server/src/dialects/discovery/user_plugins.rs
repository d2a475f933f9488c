//! `capabilities/discoverV2`: the plugins and skills that the server's user has installed.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use outpost_protocol::{
    DirectoryEntry, DiscoverParams, DiscoverResult, DiscoveryRoot, FileOp, FsReadDirectoryParams,
    PathUri, Plugin, Skill, SkillFiles, Symlinks,
};
use serde_json::Value;

use super::{
    codex_home, front_matter,
    reader::Reader,
    search::{MAX_FILE_BYTES, Search},
    send,
    toml_selection::parse,
};
use crate::{
    connection::Reply,
    dialects::fs::{FileAccess, FileService},
};

/// Plugins of one result.
const MAX_PLUGINS: usize = 128;

/// Reads the user's plugins and skills, sandboxed if the client asks for it.
pub(crate) async fn discover_host(files: Arc<FileService>, params: DiscoverParams, reply: Reply) {
    let host = &files.connection().server.host;
    let codex_home = codex_home(host);
    let home = host.info.user_home_dir.as_ref();
    let home = home.map(|home| home.as_path().to_owned());
    let share = files.connection().memory.clone();
    let read = files.execute(FileAccess::of_host(params.sandbox), move |executor| {
        let reader = Reader::new(&executor, share);
        let mut search = Search::new(&reader, 0);
        let plugins = plugins(&mut search, &codex_home);
        let mut skills = user_skills(&mut search, "codex-home-skills", codex_home.join("skills"));
        if let Some(home) = home {
            let path = home.join(".agents/skills");
            skills.extend(user_skills(&mut search, "user-agent-skills", path));
        }
        let bytes = search.bytes;
        let result = DiscoverResult {
            plugins,
            skills,
            warnings: search.warnings,
        };
        Ok((result, (bytes, reader.finish()?)))
    });
    if let Some((((result, memory), _), reply)) = reply.accept(read.await) {
        send(&files, reply, result, memory).await;
    }
}

/// The plugins that are enabled in the user's configuration and installed in the cache.
fn plugins(search: &mut Search<'_>, codex_home: &Path) -> Vec<Plugin> {
    let config = codex_home.join("config.toml");
    let reader = search.reader;
    let text = reader.read_text(&config, Symlinks::Follow, MAX_FILE_BYTES);
    let config = text
        .ok()
        .and_then(|text| parse(&text).ok())
        .unwrap_or_default();
    let listed = config.get("plugins").and_then(toml::Value::as_table);
    let enabled = listed
        .into_iter()
        .flatten()
        .filter(|(_, plugin)| plugin.get("enabled").and_then(toml::Value::as_bool) == Some(true));
    let cache = codex_home.join("plugins/cache");
    let plugins = enabled.take(MAX_PLUGINS);
    plugins
        .filter_map(|(id, _)| plugin(search, &cache, id))
        .collect()
}

fn plugin(search: &mut Search<'_>, cache: &Path, id: &str) -> Option<Plugin> {
    let (name, marketplace) = id.rsplit_once('@')?;
    // The parts become names of directories.
    let is_name =
        |name: &str| !name.is_empty() && name != ".." && name != "." && !name.contains('/');
    if !is_name(name) || !is_name(marketplace) {
        return None;
    }
    let versions = cache.join(marketplace).join(name);
    let version = newest_version(search.reader, &versions)?;
    let root = versions.join(&version);
    let found = match search.read_root(&root) {
        Ok(found) => found,
        Err(error) => {
            search.warnings.push(error);
            return None;
        }
    };
    let files = found.plugin?;
    let manifest: Value = serde_json::from_str(&files.manifest.contents).unwrap_or_default();
    let display_name = manifest["interface"]["displayName"].as_str();
    let display_name = display_name
        .or_else(|| manifest["name"].as_str())
        .unwrap_or(name);
    let skills = found.skills.iter();
    let skills = skills.filter_map(|files| {
        let mut skill = skill(search, files, None)?;
        skill.name = format!("{name}:{}", skill.name);
        Some(skill)
    });
    Some(Plugin {
        id: id.to_owned(),
        display_name: display_name.to_owned(),
        remote_plugin_id: None,
        skills: skills.collect(),
        version,
        root: PathUri::from_path(&root),
        files,
    })
}

/// The directory with the greatest name.
fn newest_version(reader: &Reader<'_>, versions: &Path) -> Option<String> {
    let op = FileOp::ReadDirectory(FsReadDirectoryParams {
        path: PathUri::from_path(versions),
        broken_links: false,
    });
    let (entries, _memory) = reader.perform(op).ok()?;
    let entries = Vec::<DirectoryEntry>::try_from(entries).ok()?;
    let versions = entries.into_iter().filter(|entry| entry.is_directory);
    versions.map(|entry| entry.file_name).next_back()
}

fn user_skills(search: &mut Search<'_>, id: &str, path: PathBuf) -> Vec<Skill> {
    if !search.reader.exists(&path) {
        return Vec::new();
    }
    let found = match search.read_root(&path) {
        Ok(found) => found,
        Err(error) => {
            search.warnings.push(error);
            return Vec::new();
        }
    };
    let root = DiscoveryRoot {
        id: id.to_owned(),
        path: PathUri::from_path(&path),
    };
    let skills = found.skills.iter();
    skills
        .filter_map(|files| skill(search, files, Some(root.clone())))
        .collect()
}

fn skill(
    search: &mut Search<'_>,
    files: &SkillFiles,
    discovery_root: Option<DiscoveryRoot>,
) -> Option<Skill> {
    let path = files.instructions.path.clone();
    let head = front_matter::parse(&files.instructions.contents).unwrap_or_default();
    let (Some(name), Some(description)) = (head.name, head.description) else {
        let warning = format!("skill {path} has no name and description in its front matter");
        search.warnings.push(warning);
        return None;
    };
    Some(Skill {
        name,
        description,
        short_description: head.short_description,
        path,
        discovery_root,
        dependencies: None,
        policy: None,
    })
}
