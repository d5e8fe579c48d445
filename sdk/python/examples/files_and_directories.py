# SPDX-License-Identifier: Apache-2.0
# Copy a directory in, work on it, and copy the result out.
import pathlib

import lodge

pathlib.Path("app").mkdir(exist_ok=True)
pathlib.Path("app/main.py").write_text("open('out/result.txt', 'w').write('42')")
with lodge.Sandbox.create() as box:
    box.upload_dir("app")
    box.files.write("app/out/readme.txt", "results are here")
    box.run("python3 main.py", cwd="app", check=True)
    box.download_dir("app/out", "out")
print(sorted(p.name for p in pathlib.Path("out").iterdir()), pathlib.Path("out/result.txt").read_text())
