import sys
if sys.version_info < (3, 8):
    import os
    os.write(3, ('{"event":"too_old","version":"%d.%d.%d"}\n' % sys.version_info[:3]).encode())
    os._exit(1)
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = False
import dockbridge_driver
