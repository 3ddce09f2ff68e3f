[void](New-Item -ItemType Directory -Force -Path (Split-Path -Parent $p.path))
[IO.File]::WriteAllBytes($p.path, [Convert]::FromBase64String([Console]::In.ReadToEnd()))
