# SPDX-License-Identifier: Apache-2.0
# Run by cpack before it packs: without dpkg-shlibdeps a Debian package would be made all the same, one that
# names none of the libraries it needs.
if(CPACK_GENERATOR MATCHES "DEB")
    find_program(MEMSCAPE_SHLIBDEPS dpkg-shlibdeps)
    if(NOT MEMSCAPE_SHLIBDEPS)
        message(FATAL_ERROR "dpkg-shlibdeps is missing, and without it the package would not say which "
                            "libraries it needs; install it: apt-get install dpkg-dev")
    endif()
endif()
